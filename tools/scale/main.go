// The scale program runs the publishing side of many watchers against one NATS of three servers, and reports what that costs. The
// clusters are simulated: the events of their watchers are generated, and go through the codec and the bus that the watcher uses. The
// servers and all messages are real, with the accounts, users and streams that deploy/nats/render.sh writes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, "deploy/nats", os.Args[1:]); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// settings are the values of the flags.
type settings struct {
	// sizes are the numbers of clusters, step by step.
	sizes []int
	// sources is the number of sources of each cluster.
	sources int
	// sustain is how long changes are published without a pause.
	sustain time.Duration
	// changed is the share of the sources that change while half of the clusters are disconnected.
	changed float64
	// write is the path of the report. If it is empty, the report is only printed.
	write string
}

func parse(args []string) (settings, error) {
	s := settings{}
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	sizes := flags.String("clusters", "50,100,200", "how many clusters, separated by commas; the first are kept as more come")
	flags.IntVar(&s.sources, "sources", 2000, "sources of each cluster")
	flags.DurationVar(&s.sustain, "sustain", 20*time.Second, "how long changes are published without a pause")
	flags.Float64Var(&s.changed, "changed", 0.05, "share of the sources that change while half of the clusters are away")
	flags.StringVar(&s.write, "write", "", "`file` that the report is written to as well")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 2 {
			return s, fmt.Errorf("-clusters: %q is not a number of 2 or more", text)
		}
		s.sizes = append(s.sizes, size)
	}
	switch {
	case !slices.IsSorted(s.sizes) || len(slices.Compact(slices.Clone(s.sizes))) < len(s.sizes):
		return s, errors.New("-clusters: want each number larger than the one before")
	case s.sources < 1:
		return s, fmt.Errorf("-sources: %d is too few, want 1 or more", s.sources)
	case s.changed <= 0 || s.changed > 1:
		return s, fmt.Errorf("-changed: %g is no share, want more than 0 and at most 1", s.changed)
	}
	return s, nil
}

// run runs all measurements. Deployed is the path of deploy/nats.
func run(ctx context.Context, deployed string, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "keyturn-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	h, err := startHub(ctx, deployed, dir, names(slices.Max(s.sizes)))
	if err != nil {
		return err
	}
	defer h.stop()
	r, err := measure(ctx, h, s)
	if err != nil {
		return err
	}
	fmt.Print("\n", r.page())
	if s.write == "" {
		return nil
	}
	return os.WriteFile(s.write, []byte(r.page()), 0o644)
}
