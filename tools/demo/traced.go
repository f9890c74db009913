package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
)

// tracedReaders returns the Deployments that read the Secret of [traceScenario].
func tracedReaders() []string { return []string{"web", "api"} }

// setTraced sets the stage for [traceScenario]: a Jaeger, a Secret, and what reads it.
func setTraced(ctx context.Context, s *stage, out *report) error {
	if err := s.build(ctx, out); err != nil {
		return err
	}
	var err error
	if s.jaeger, err = testbed.StartJaeger(ctx, testbed.JaegerOptions{Dir: filepath.Join(s.dir, "jaeger"), Log: out}); err != nil {
		return err
	}
	s.onStop(s.jaeger.Stop)
	out.did("Jaeger is running at %s", s.jaeger.URL())
	if err := programs.SetSecret(ctx, s.client, namespace, "db", map[string]string{"password": rand.Text()}); err != nil {
		return err
	}
	var readers []*appsv1.Deployment
	for _, name := range tracedReaders() {
		deployment := programs.NewDeployment(namespace, name, 2, optIn())
		programs.ReadSecret(&deployment.Spec.Template, "db")
		readers = append(readers, deployment)
	}
	if err := s.open(ctx, len(readers), func(ctx context.Context) error { return s.createAll(ctx, readers) }); err != nil {
		return err
	}
	return s.run(ctx, out, programs.Options{
		ActuatorArgs: []string{"--settle", "200ms"},
		Env:          []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.jaeger.OTLPHTTP(), "OTEL_BSP_SCHEDULE_DELAY=200"},
	})
}

func traceScenario() []step {
	var rolls []string
	for _, name := range tracedReaders() {
		rolls = append(rolls, "deployment/"+name)
	}
	return []step{{
		title:    "Rotate secret/db",
		expected: "its two readers roll, and one trace in Jaeger runs from the change to the last ready pod",
		act:      rotate("secret/db", "password"), events: []string{"secret/db"}, rolls: rolls, check: showTrace,
	}}
}

// showTrace waits until Jaeger has all of the trace, and shows it.
func showTrace(ctx context.Context, s *stage, out *report) error {
	const subject = "/api/v1/namespaces/" + namespace + "/secrets/db"
	var found []testbed.Trace
	// Until Jaeger has the last span, which the programs send soon after it has ended.
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var err error
		found, err = s.jaeger.Traces(ctx, "keyturn-watcher", map[string]string{"cloudevents.event_subject": subject})
		return err == nil && len(found) > 0 && isWhole(found[0]), err
	})
	if err != nil {
		return fmt.Errorf("waiting for the trace of %s: %w", subject, err)
	}
	trace := found[0]
	out.block(fmt.Sprintf("Trace %s, found with the tag cloudevents.event_subject=%s", trace.ID, subject), waterfall(trace))
	if len(found) > 1 {
		return fmt.Errorf("there are %d traces of %s, want 1", len(found), subject)
	}
	return nil
}

// isWhole reports whether the trace has all spans of the scenario: those that end last, and the parents of all others, which the watcher
// sends on its own.
func isWhole(trace testbed.Trace) bool {
	count := func(operation string) int {
		return len(slices.DeleteFunc(slices.Clone(trace.Spans), func(span testbed.Span) bool { return span.Operation != operation }))
	}
	spans := map[string]bool{}
	for _, span := range trace.Spans {
		spans[span.ID] = true
	}
	orphan := func(span testbed.Span) bool { return span.Parent != "" && !spans[span.Parent] }
	return count("rollout deployment") == len(tracedReaders()) && !slices.ContainsFunc(trace.Spans, orphan)
}

// isWatched reports whether the demo runs in a terminal. The null device looks like one.
func isWatched() bool {
	stdin, err := os.Stdin.Stat()
	null, nullErr := os.Stat(os.DevNull)
	return err == nil && nullErr == nil && isTerminal(os.Stdin) && !os.SameFile(stdin, null)
}

// leaveJaegerUp waits for Enter if the demo runs in a terminal.
func leaveJaegerUp(ctx context.Context, s *stage, out *report) error {
	if !isWatched() {
		return nil
	}
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return fmt.Errorf("reading from the terminal: %w", err)
	}
	defer terminal.Close()
	out.begin(0, "Jaeger is still running")
	out.line("look", "%s/api/traces?service=keyturn-actuator", s.jaeger.URL())
	out.line("look", "to send more traces: OTEL_EXPORTER_OTLP_ENDPOINT=%s", s.jaeger.OTLPHTTP())
	out.line("stop", "press Enter")
	// An interrupt ends a pending read.
	stop := context.AfterFunc(ctx, func() { _ = terminal.SetReadDeadline(time.Now()) })
	defer stop()
	if _, err := terminal.Read(make([]byte, 1)); err != nil && ctx.Err() == nil {
		return fmt.Errorf("reading from the terminal: %w", err)
	}
	return ctx.Err()
}
