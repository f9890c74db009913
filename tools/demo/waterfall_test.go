package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testbed"
)

func TestWaterfallIsATreeWithBars(t *testing.T) {
	begin := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	at := func(offset, took int) (time.Time, time.Duration) {
		return begin.Add(time.Duration(offset) * time.Millisecond), time.Duration(took) * time.Millisecond
	}
	span := func(id, parent, service, operation, deployment string, offset, took int) testbed.Span {
		s := testbed.Span{ID: id, Parent: parent, Service: service, Operation: operation, Tags: map[string]string{"k8s.deployment.name": deployment}}
		s.Start, s.Duration = at(offset, took)
		return s
	}
	got := waterfall(testbed.Trace{Spans: []testbed.Span{
		span("1", "", "watcher", "detect", "", 0, 10),
		span("2", "1", "watcher", "publish keyturn.v1.{cluster}.secret.{namespace}.{name}", "", 1, 9),
		span("3", "2", "actuator", "process", "", 50, 25),
		span("4", "3", "actuator", "plan", "web", 50, 0),
		span("5", "4", "actuator", "rollout", "web", 70, 30),
	}})
	want := `SERVICE   SPAN                                                START       TOOK
watcher   detect                                             0.0 ms    10.0 ms  ████
watcher     publish keyturn.v1.{cluster}.secret.{name...     1.0 ms     9.0 ms  ████
actuator      process                                       50.0 ms    25.0 ms                      ██████████
actuator        plan [web]                                  50.0 ms     0.0 ms                      █
actuator          rollout [web]                             70.0 ms    30.0 ms                              ████████████
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := waterfall(testbed.Trace{}); got != "" {
		t.Errorf("a trace without spans: got %q", got)
	}
	// All at once, as far as a clock of microseconds can tell.
	if got := waterfall(testbed.Trace{Spans: []testbed.Span{span("1", "", "watcher", "detect", "", 0, 0)}}); strings.Count(got, "█") != 1 {
		t.Errorf("a trace that took no time: got\n%s", got)
	}
}
