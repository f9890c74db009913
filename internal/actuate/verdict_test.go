package actuate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
)

func TestAVerdictRollsForTheFirstChangeAndWaitsOnlyIfNothingRolls(t *testing.T) {
	for _, tt := range []struct {
		name    string
		reasons []plan.Reason
		want    []plan.Reason
		rolls   bool
		since   time.Time
		waits   obstacle
	}{
		{name: "a change to record", reasons: []plan.Reason{plan.PodsNewer}, want: []plan.Reason{plan.PodsNewer}},
		{
			name: "two changes to roll for", reasons: []plan.Reason{plan.Changed, plan.Appeared}, want: []plan.Reason{plan.Changed, plan.Appeared},
			rolls: true, since: written.Add(-time.Second),
		},
		{
			name: "a source on hold", reasons: []plan.Reason{plan.SourceOnHold}, want: []plan.Reason{plan.SourceOnHold},
			waits: obstacle{reason: plan.SourceOnHold, said: "configmap/app: migration"},
		},
		{
			name: "pods that start, and a change to roll for", reasons: []plan.Reason{plan.PodsStarting, plan.Changed},
			want: []plan.Reason{plan.PodsNewer, plan.Changed}, rolls: true, since: written.Add(-time.Second),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var v verdict
			for i, reason := range tt.reasons {
				change := changeOf(func(c *events.Change) { c.Source = app })
				decision := plan.Decision{Source: change.Source, Reason: reason}
				if reason == plan.SourceOnHold {
					decision.Hold = "migration"
				}
				v.do(&pendingChange{change: change, received: written.Add(-time.Duration(i) * time.Second)}, decision)
			}
			if v.rolls {
				v.rollNow()
			}
			var got []plan.Reason
			for _, decision := range v.doing {
				got = append(got, decision.Reason)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the decisions (-want +got):\n%s", diff)
			}
			if v.rolls != tt.rolls || !v.since.Equal(tt.since) || v.waits != tt.waits {
				t.Errorf("rolls: %v since %s, waits for %+v; want %v since %s, waits for %+v", v.rolls, v.since, v.waits, tt.rolls, tt.since, tt.waits)
			}
		})
	}
}
