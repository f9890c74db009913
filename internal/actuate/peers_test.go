package actuate

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAWorkloadWaitsForAPeerThatFailed(t *testing.T) {
	password := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}}
	rolledFor := func(version, uid string) func(*workload.Workload) {
		return named("canary", func(w *workload.Workload) {
			w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: version, UID: uid}}
		})
	}
	tests := []struct {
		name   string
		peer   func(*workload.Workload)
		change func(*events.Change)
		want   plan.Reason
	}{
		{name: "that was rolled for the same change", peer: rolledFor("100", "uid"), want: plan.PeerFailed},
		{
			name: "also when an event about another key came since", peer: rolledFor("100", "uid"),
			change: func(c *events.Change) {
				c.ResourceVersion, c.ChangedAt, c.Changed = "110", "110", []string{"user"}
				c.Keys["user"] = events.Key{Fingerprint: fp("4"), ChangedAt: "110"}
			},
			want: plan.PeerFailed,
		},
		{
			name: "but not when the content has changed since: that may mend it", peer: rolledFor("100", "uid"),
			change: func(c *events.Change) {
				c.ResourceVersion, c.ChangedAt = "110", "110"
				c.Keys["password"] = events.Key{Fingerprint: fp("4"), ChangedAt: "110"}
			},
			want: plan.None,
		},
		{name: "but not when it was rolled for an earlier change", peer: rolledFor("90", "uid"), want: plan.None},
		{name: "but not when it was rolled for another source of this name", peer: rolledFor("100", "another"), want: plan.None},
		{name: "but not when it was never rolled for the source", peer: named("canary", nil), want: plan.None},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, peer := workloadOf(t, "auto", password, nil), workloadOf(t, "auto", password, test.peer)
			f := newFailedPeers(indexOf(w, peer))
			f.add(peer.Key())
			decision := plan.Decide(w, changeOf(test.change), nil)
			if got := f.stop(w, &decision); got != (test.want == plan.PeerFailed) {
				t.Errorf("it is stopped: %t, want %s", got, test.want)
			}
		})
	}
	t.Run("but not for itself", func(t *testing.T) {
		w := workloadOf(t, "auto", password, rolledFor("100", "uid"))
		f := newFailedPeers(indexOf(w))
		f.add(w.Key())
		decision := plan.Decide(w, changeOf(nil), nil)
		if f.stop(w, &decision) {
			t.Error("it is stopped by its own failure")
		}
	})
}
