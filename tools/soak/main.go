// The soak continuously changes sources while it kills, suspends and disconnects everything that Keyturn consists of and needs. At the
// end it counts what was lost, done twice, or not reported.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/keyturn/keyturn/tests/programs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// errFailed is the error of a run that has found something.
var errFailed = errors.New("something was lost, doubled, untold or broken")

// settings are the values of the flags.
type settings struct {
	duration  time.Duration
	seed      uint64
	workloads int
	actuators int
	kinds     []kind
	// keep is the folder of the control plane and of the programs' logs and stores. Empty means a temporary one, which is removed if nothing
	// is wrong.
	keep string
	// root is the root of the repository, seen from here.
	root string
	// binaries are the programs. If zero, they are built.
	binaries programs.Binaries
}

// pace returns how long faults and calms are relative to those of a long run, so that even a run of a minute has most kinds
// of faults.
func (s settings) pace() float64 {
	switch {
	case s.duration <= 2*time.Minute:
		return 0.15
	case s.duration < 10*time.Minute:
		return 0.3
	}
	return 1
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args, rand.Uint64N(1<<32))
	if err != nil {
		return err
	}
	report, err := runSoak(ctx, s, os.Stdout)
	if err != nil {
		return err
	}
	fmt.Println()
	report.print(os.Stdout)
	if report.failed() {
		return errFailed
	}
	return nil
}

// parse reads the flags. Seed is the default of -seed.
func parse(args []string, seed uint64) (settings, error) {
	s := settings{root: "."}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.DurationVar(&s.duration, "duration", time.Hour, "how long there are faults")
	flags.Uint64Var(&s.seed, "seed", seed, "makes the fleet, the changes and the faults; a random one without the flag")
	flags.IntVar(&s.workloads, "workloads", 200, "how many workloads there are")
	flags.IntVar(&s.actuators, "actuators", 1, "1, or 3 whose NATS servers form a cluster")
	kinds := flags.String("faults", "", "the `kinds` of faults, separated by commas; empty means all")
	flags.StringVar(&s.keep, "keep", "", "keep logs and stores in this `folder`")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	switch {
	case flags.NArg() > 0:
		return settings{}, fmt.Errorf("arguments %q are not known, want flags only", flags.Args())
	case s.duration <= 0:
		return settings{}, fmt.Errorf("-duration: %s is too short, want more than 0", s.duration)
	case s.workloads < 1:
		return settings{}, fmt.Errorf("-workloads: %d is too few, want 1 or more", s.workloads)
	case s.actuators != 1 && s.actuators != 3:
		return settings{}, fmt.Errorf("-actuators: %d is not possible, want 1 or 3", s.actuators)
	}
	var err error
	s.kinds, err = parseKinds(*kinds, s.actuators)
	return s, err
}
