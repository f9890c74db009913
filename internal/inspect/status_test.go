package inspect

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// statusOf is ReadStatus. It asks again while the streams do not answer.
func statusOf(t *testing.T, b *bus.Bus, namespace string, since time.Time) (status Status, err error) {
	t.Helper()
	err = natstest.Answered(t, func() (err error) {
		status, err = ReadStatus(t.Context(), b, namespace, since)
		return err
	})
	return status, err
}

func TestStatusSaysWhichWorkloadsWaitFailedOrAreRolled(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	at := func(seconds int) time.Time { return historyNow.Add(time.Duration(seconds) * time.Second) }
	held := func(name string, seconds int) events.Outcome {
		return outcomeOf(name, events.VerbHeld, plan.LowerWave.String(), "it waits", at(seconds))
	}
	publishOutcomes(t, b,
		held("waits", 0),
		held("waited", 1), rolled(outcomeOf("waited", events.VerbStarted, "content-changed", "", at(2))), rolled(outcomeOf("waited", events.VerbCompleted, "rolled-out", "", at(2))),
		rolled(outcomeOf("rolls", events.VerbStarted, "content-changed", "", at(3))),
		rolled(outcomeOf("fails", events.VerbStarted, "content-changed", "", at(4))), rolled(outcomeOf("fails", events.VerbFailed, "no-progress", "no pod is ready", at(4))),
		outcomeOf("rolls", events.VerbSkipped, plan.KeysNotConsumed.String(), "", at(5)), outcomeOf("fails", events.VerbSkipped, plan.KeysNotConsumed.String(), "", at(5)),
		rolled(outcomeOf("gone", events.VerbStarted, "content-changed", "", at(6))), rolled(outcomeOf("gone", events.VerbSkipped, plan.WorkloadGone.String(), "", at(6))),
	)
	got, err := statusOf(t, b, "", time.Time{})
	testkit.Must(t, err)
	want := map[string][]string{
		"waiting": {"shop deployment/waits lower-wave"}, "failed": {"shop deployment/fails no-progress"}, "rolling": {"shop deployment/rolls content-changed"},
	}
	testkit.WantEqual(t, "workloads", want, workloadsIn(got))
	if got.Changes != 1 || got.Completed != 1 || got.Failures != 1 || got.LastChange.IsZero() {
		t.Errorf("counted: %+v", got)
	}
	if len(got.Streams) != 3 || got.Streams[0].Messages == 0 || got.Streams[1].Limit == 0 {
		t.Errorf("streams: %+v", got.Streams)
	}
	if got, err = statusOf(t, b, "elsewhere", time.Time{}); err != nil || len(workloadsIn(got)) != 0 || got.Changes != 0 {
		t.Errorf("of another namespace: %+v (%v)", got, err)
	}
	// The lists have what began before the period of the counts.
	got, err = statusOf(t, b, "", time.Now().Add(time.Hour))
	testkit.Must(t, err)
	testkit.WantEqual(t, "workloads", want, workloadsIn(got))
	if got.Changes+got.Completed+got.Failures > 0 || !got.LastChange.IsZero() {
		t.Errorf("counted: %+v", got)
	}
}

// workloadsIn are the workloads of each list.
func workloadsIn(s Status) map[string][]string {
	names := map[string][]string{}
	for list, workloads := range map[string][]WorkloadStatus{"waiting": s.Waiting, "failed": s.Failed, "rolling": s.Rolling} {
		for _, w := range workloads {
			names[list] = append(names[list], w.Namespace+" "+w.Workload+" "+w.Reason)
		}
	}
	return names
}

func TestStatusForgetsAWorkloadThatWasCreatedAgain(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	at := func(seconds int) time.Time { return historyNow.Add(time.Duration(seconds) * time.Second) }
	again := func(o events.Outcome) events.Outcome {
		o.Workload.UID += "-2"
		return o
	}
	publishOutcomes(t, b,
		rolled(outcomeOf("failed", events.VerbFailed, "deadline-exceeded", "no pod is ready", at(0))),
		outcomeOf("held", events.VerbHeld, plan.OnHold.String(), "it is on hold", at(0)),
		outcomeOf("both", events.VerbHeld, plan.OnHold.String(), "it is on hold", at(0)),
		again(rolled(outcomeOf("failed", events.VerbCompleted, "rolled-out", "", at(1)))),
		again(outcomeOf("held", events.VerbSkipped, plan.SameContent.String(), "", at(1))),
		again(outcomeOf("both", events.VerbHeld, plan.LowerWave.String(), "it waits", at(1))),
		outcomeOf("both", events.VerbSkipped, plan.WorkloadGone.String(), "", at(2)), // published late
	)
	got, err := statusOf(t, b, "", time.Time{})
	testkit.Must(t, err)
	testkit.WantEqual(t, "workloads", map[string][]string{"waiting": {"shop deployment/both lower-wave"}}, workloadsIn(got))
}
