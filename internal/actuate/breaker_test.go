package actuate

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// TestASourceThatChangesWithoutEndRollsAWorkloadNoMoreThanTheLimit changes it every twenty seconds for three hours, with a new leader after each
// change, which knows what is on the workload.
func TestASourceThatChangesWithoutEndRollsAWorkloadNoMoreThanTheLimit(t *testing.T) {
	const every, most, hours = 20 * time.Second, 10, 3
	c := newStreamless(t, deploymentOf("web", "db", rollOn("auto")))
	began := time.Now().Truncate(time.Second)
	now, options := began, c.options()
	options.Now, options.MaxRollsPerHour = func() time.Time { return now }, most
	var l *loop
	lead := func() *workload.Workload {
		a, err := New(options)
		if err != nil {
			t.Fatal(err)
		}
		w, _ := a.index.Read(deployments, c.get("web"))
		a.index.Listed(w, "")
		l = newLoop(a.surroundings, unwritten(a))
		return w
	}
	settle := func() {
		l.dispatcher.dispatch(t.Context())
		for !l.patcher.idle() {
			l.completion.finish(t.Context(), <-l.patcher.results)
			l.dispatcher.dispatch(t.Context())
		}
	}
	last, told := "", 0
	for i := 1; now.Sub(began) < hours*time.Hour; i++ {
		w, version := lead(), c.next()
		last = fp(string("0123456789abcdef"[i%16]))
		e := eventOf(changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt, c.Fingerprint = version, version, last }))
		e.delivery.Received, e.delivery.Seq, e.open = now, uint64(i), 1
		l.intake.consider(t.Context(), e, w, nil)
		now = now.Add(every)
		settle()
		for _, r := range l.outbox.waiting {
			if r.outcome.Reason == plan.RolledTooOften.String() {
				told++
			}
		}
	}
	if got := len(c.patches()); got != hours*most {
		t.Errorf("it is rolled %d times in %d hours, want %d in each", got, hours, most)
	}
	if told == 0 {
		t.Error("nobody is told")
	}
	now = now.Add(time.Hour)
	settle()
	got, _ := workload.Read(deployments, c.get("web"), workload.Reading{})
	if got.Rolled["secret/db"].Fingerprint != last || len(c.patches()) != hours*most+1 {
		t.Errorf("after %d rolls it has %s, want the last content, %s", len(c.patches()), got.Rolled["secret/db"].Fingerprint, last)
	}
}

func TestRollsThatAreRevertedCountAlthoughNothingIsLeftOfThem(t *testing.T) {
	const most = 3
	b := newReadBed(t, workload.Reading{MaxRollsPerHour: most}, rollOn("auto"))
	for range most + 2 {
		b.change()
		b.intake.index.Written(b.read())
		b.wipe()
		b.act() // The record is corrected.
		b.intake.index.Written(b.read())
	}
	counts := map[string]int{}
	for _, outcome := range b.outcomes() {
		counts[string(outcome.Verb)+" "+outcome.Reason]++
	}
	if counts["started content-changed"] != most || counts["failed reverted"] != most || counts["held rolled-too-often"] == 0 {
		t.Errorf("the outcomes are %v, want %d rolls that are reverted", counts, most)
	}
}
