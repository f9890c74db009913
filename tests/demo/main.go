// The demo shows both programs at work: on a real control plane on this machine it makes changes, one after the other, and
// shows for each what was expected of it and what came of it.
//
//	go run ./tests/demo
//	go run ./tests/demo -secrets
//	go run ./tests/demo -trace
//
// The first changes Secrets and ConfigMaps. The second rotates secrets in a real secret store, from where the real External
// Secrets Operator brings them to the cluster, and has a certificate renewed by the real cert-manager. The store is a Vault,
// or the OpenBao that BAO_BIN names. The third sends the trace of one change to a real Jaeger, shows it, and leaves Jaeger up
// until Enter is pressed where it is run in a terminal.
//
// It is run from the root of the repository. It ends by itself, with the status 0 only if everything was as expected, and
// leaves neither processes nor files behind, also when it is interrupted.
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

// interrupted is the status of a program that was ended by Ctrl-C, as a shell would report it.
const interrupted = 128 + int(syscall.SIGINT)

func main() { os.Exit(run()) }

// show is one of the things that the demo can show.
type show struct {
	heading string
	// set sets the stage, and leaves it as it is where something is wrong.
	set   func(ctx context.Context, s *stage, out *report) error
	steps []step
	// linger leaves the stage up for a person to look at. Nil where there is nothing to see.
	linger func(ctx context.Context, s *stage, out *report) error
}

func run() int {
	secrets := flag.Bool("secrets", false, "show rotations in a secret store, and not changes of Secrets and ConfigMaps")
	traced := flag.Bool("trace", false, "show the trace of one change in Jaeger")
	flag.Parse()
	shown := show{heading: "Keyturn: when a key turns, the workloads that hold it turn with it", set: setShop, steps: scenario()}
	switch {
	case *secrets:
		shown = show{heading: "Keyturn: from the secret store to the pod", set: setChain, steps: chainScenario()}
	case *traced:
		shown = show{heading: "Keyturn: one change, one trace", set: setTraced, steps: traceScenario(), linger: leaveJaegerUp}
	}
	// Further signals change nothing: what is being stopped then is stopped within seconds. SIGPIPE is among them so that
	// `make demo | head` leaves nothing behind either.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	out := newReport(os.Stdout)
	err := play(ctx, out, shown)
	switch {
	case ctx.Err() != nil:
		out.end("Interrupted")
		return interrupted
	case err != nil:
		out.end("Not as expected")
		return 1
	}
	out.end("As expected")
	return 0
}

// play sets the stage and goes through the scenario, up to the first step that is not as expected: those after it stand on
// it. The stage is gone when it returns. Errors are in the report already.
func play(ctx context.Context, out *report, shown show) (err error) {
	out.heading(shown.heading)
	out.begin(0, "Set the stage")
	s := &stage{}
	defer func() {
		if closeErr := s.close(); closeErr != nil {
			out.line("left over", "%v", closeErr)
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
	if err == nil && shown.linger != nil {
		err = shown.linger(ctx, s, out)
	}
	return err
}
