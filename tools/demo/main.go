// The demo shows both programs at work: it makes a series of changes on a real control plane on this machine, and shows the expected and
// the actual result of each.
//
//	go run ./tools/demo
//	go run ./tools/demo -secrets
//	go run ./tools/demo -trace
//
// The first changes Secrets and ConfigMaps. The second rotates secrets in a real secret store, which the real External Secrets Operator
// syncs to the cluster, and renews a certificate with the real cert-manager. The store is Vault, or the OpenBao that BAO_BIN names. The
// third sends the trace of one change to a real Jaeger, shows it, and in a terminal leaves Jaeger running until you press Enter.
//
// Run it from the root of the repository. It ends by itself, with status 0 only if everything was as expected, and leaves neither
// processes nor files behind, even when interrupted, except the page that the second draws of its rotations: bin/rotations.html.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// interrupted is the exit status that a shell reports for a program ended by Ctrl-C.
const interrupted = 128 + int(syscall.SIGINT)

func main() { os.Exit(run()) }

// show is one of the demos.
type show struct {
	heading string
	// set sets the stage up. On an error it leaves the stage to be closed.
	set   func(ctx context.Context, s *stage, out *report) error
	steps []step
	// last runs after the summary, with the stage still up. May be nil.
	last func(ctx context.Context, s *stage, out *report) error
}

func changesDemo() show {
	return show{heading: "Keyturn: when a key turns, the workloads that hold it turn with it", set: setShop, steps: scenario()}
}

// secretsDemo writes a page of its rotations to a path.
func secretsDemo(page string) show {
	return show{heading: "Keyturn: from the secret store to the pod", set: setChain, steps: chainScenario(), last: drawRotations(page)}
}

func traceDemo() show {
	return show{heading: "Keyturn: one change, one trace", set: setTraced, steps: traceScenario()}
}

func run() int {
	secrets := flag.Bool("secrets", false, "show rotations in a secret store instead of changes to Secrets and ConfigMaps")
	traced := flag.Bool("trace", false, "show the trace of one change in Jaeger")
	flag.Parse()
	shown := changesDemo()
	switch {
	case *secrets:
		shown = secretsDemo(pagePath)
	case *traced:
		shown = traceDemo()
		shown.last = leaveJaegerUp
	}
	// Further signals are ignored: stopping takes only seconds. SIGPIPE is included so that `make demo | head` leaves nothing behind either.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	out := newReport(os.Stdout)
	err := play(ctx, out, shown)
	switch {
	case ctx.Err() != nil:
		out.end("Interrupted")
		return interrupted
	case err != nil:
		out.end("Failed")
		return 1
	}
	out.end("Everything as expected")
	return 0
}

// play sets the stage and runs the scenario up to the first step that fails, because later steps build on it. The stage is gone when it
// returns, and errors are in the report.
func play(ctx context.Context, out *report, shown show) (err error) {
	out.heading(shown.heading)
	out.begin(0, "Set up")
	s := &stage{}
	defer func() {
		if closeErr := s.close(); closeErr != nil {
			out.line("leftover", "%v", closeErr)
			err = errors.Join(err, closeErr)
		}
	}()
	err = shown.set(ctx, s, out)
	out.verdict(ctx, err)
	if err != nil {
		return err
	}
	steps := shown.steps
	results := make([]result, len(steps))
	for i, step := range steps {
		results[i].title = step.title
		if err != nil {
			continue
		}
		out.begin(i+1, step.title)
		out.line("expected", "%s", step.expected)
		start := time.Now()
		err = step.perform(ctx, s, out)
		results[i].ran, results[i].err, results[i].took = true, err, time.Since(start)
		out.verdict(ctx, err)
	}
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		out.logs(s.watcher, s.actuator)
	}
	out.summary(results)
	if err == nil && shown.last != nil {
		err = shown.last(ctx, s, out)
	}
	return err
}
