// The bench compares the programs with the floor: a bare watch and one patch. It runs both on one control plane, one at a
// time and alternating, so that the noise of the machine affects both, and prints medians and their ratios.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// errMissed is the error of a strict run that has missed a target.
var errMissed = errors.New("a target was missed")

// settings are the values of the flags.
type settings struct {
	// write is the path of the report. If it is empty, the report is only printed.
	write string
	// selected selects the measurements by name.
	selected *regexp.Regexp
	// scale multiplies the number of objects and the number of changes.
	scale float64
	// fanOut is the number of Deployments, each with a pod, that read one Secret. If it is zero, the fan-out is not measured.
	fanOut int
	// large also measures a large cluster.
	large bool
	// old is a checkout of an earlier commit, with its programs. Empty means that it is not measured.
	old string
	// rounds is how often each contender is started and measured.
	rounds int
	strict bool
	// reloader also measures what replaces Reloader.
	reloader bool
	// keep is the folder of the control plane and of the programs' logs and stores. Empty means a temporary one.
	keep string
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == floorCommand {
		return runFloor(ctx, args[1:])
	}
	if len(args) > 0 && args[0] == spinCommand {
		runSpin(ctx)
		return nil
	}
	s, err := parse(args)
	if err != nil {
		return err
	}
	report, err := measureAll(ctx, s)
	if err != nil {
		return err
	}
	fmt.Println()
	report.print(os.Stdout)
	if s.write != "" {
		if err := report.writeFile(s.write); err != nil {
			return err
		}
		fmt.Println("\nwritten to", s.write)
	}
	if s.strict && report.missed() {
		return errMissed
	}
	return nil
}

func parse(args []string) (settings, error) {
	s := settings{selected: regexp.MustCompile("")}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&s.write, "write", "", "write the report to this `file` too, as Markdown")
	selected := func(text string) (err error) {
		s.selected, err = regexp.Compile(text)
		return err
	}
	flags.Func("run", "measure only what matches this `regexp`: latency, shared, burst-300, burst-1000, traced, memory, one-pod, "+
		"fan-out, fan-out-split, large, old", selected)
	flags.Float64Var(&s.scale, "scale", 1, "multiply the number of objects and changes, to try the bench itself")
	flags.IntVar(&s.fanOut, "fan-out", 0, "also measure so many Deployments with a pod each that read one Secret; "+
		"with a -run that matches fan-out, the default is 2000 at scale 1")
	flags.BoolVar(&s.large, "large", false, "also measure a large cluster: 10,000 workloads and 50,000 Secrets at scale 1; "+
		"so does a -run that matches large")
	flags.StringVar(&s.old, "old", "", "also measure by turns the programs of another checkout, this `folder`, in which make build has run, "+
		"and whose actuator has --nats-embedded")
	flags.IntVar(&s.rounds, "rounds", 5, "how often each is started and measured, in turn")
	flags.BoolVar(&s.reloader, "reloader", false, "also measure Reloader's mode and the command reloader, in the same rounds")
	flags.BoolVar(&s.strict, "strict", false, "exit with 1 if a target is missed")
	flags.StringVar(&s.keep, "keep", "", "keep logs and stores in this `folder`")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	if flags.NArg() > 0 {
		return settings{}, fmt.Errorf("arguments %q are not known, want flags only", flags.Args())
	}
	if err := s.validate(); err != nil {
		return settings{}, err
	}
	if s.selected.String() != "" && s.measuresFanOut() && s.fanOut == 0 {
		s.fanOut = max(1, int(math.Round(s.scale*allFanOut)))
	}
	s.large = s.large || s.selected.String() != "" && s.selected.MatchString(large)
	return s, nil
}

// maxFanOut is the maximum number of Deployments of the fan-out. The single node of the control plane has addresses for so many pods, and
// for some more while pods are replaced.
const maxFanOut = 20_000

func (s settings) validate() error {
	switch {
	case s.scale <= 0 || s.scale > 10:
		return fmt.Errorf("-scale: %g is out of range, want more than 0, and 10 at most", s.scale)
	case s.rounds < 1:
		return fmt.Errorf("-rounds: %d is too few, want 1 or more", s.rounds)
	case s.write != "" && (s.scale != 1 || s.selected.String() != ""):
		return errors.New("-write: is for the whole bench, want it without -run and -scale")
	case s.fanOut < 0 || s.fanOut > maxFanOut:
		return fmt.Errorf("-fan-out: %d is out of range, want 0 to %d", s.fanOut, maxFanOut)
	case s.large && !s.selected.MatchString(large):
		return errors.New("-large: is not measured with this -run, want one that matches large")
	case s.old != "" && !s.selected.MatchString(old):
		return errors.New("-old: is not measured with this -run, want one that matches old")
	case s.fanOut > 0 && !s.measuresFanOut():
		return errors.New("-fan-out: is not measured with this -run, want one that matches fan-out")
	}
	return nil
}

// measuresFanOut reports whether the fan-out is selected, or the contenders that split what it costs.
func (s settings) measuresFanOut() bool {
	return s.selected.MatchString(fanOut) || s.selected.MatchString(fanOutSplit)
}

// measures reports whether a step of a round is measured for a contender. The cost of tracing is the ratio of the rates with and
// without it.
func (s settings) measures(step string, c contender) bool {
	if c.name() == contenderTraced || c.name() == contenderOneCore {
		return step == burst300
	}
	return s.selected.MatchString(step) || step == burst300 && c.name() == contenderKeyturn && s.selected.MatchString(traced)
}

// withoutPods reports whether anything but the fan-out is measured.
func (s settings) withoutPods() bool { return s.roundsNeeded() > 0 || s.selected.MatchString(memory) }

// roundsNeeded returns the number of rounds. It is 0 if nothing that is measured in rounds is selected.
func (s settings) roundsNeeded() int {
	if slices.ContainsFunc([]string{latency, shared, burst300, burst1000, traced}, s.selected.MatchString) {
		return s.rounds
	}
	return 0
}
