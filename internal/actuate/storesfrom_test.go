package actuate

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// TestAnActuatorActsOnWhatAnotherClusterSaysOfASecretStore makes the watcher of a hub report a secret in a store, and a
// Secret of its own cluster that has the name of one here.
func TestAnActuatorActsOnWhatAnotherClusterSaysOfASecretStore(t *testing.T) {
	c := newCluster(t, deploymentOf("web", "db", rollOn("openbao:secret/shop/db")), deploymentOf("other", "db", rollOn("secret/db")))
	buses := natstest.Buses(t, "demo", "hub")
	c.bus = buses[0]
	hub := buses[1]
	var seq uint64
	rotate := func(version int64) {
		t.Helper()
		at := time.Now()
		rotated := changeOf(func(change *events.Change) {
			change.Cluster, change.Verb, change.UID = "hub", events.VerbRotated, "bao"
			change.Source = events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}.Source()
			change.ResourceVersion = strconv.FormatInt(at.UnixNano(), 10)
			change.ChangedAt, change.Time, change.WrittenAt = change.ResourceVersion, at, at
			change.Keys, change.Changed, change.Truncated = nil, nil, true
			change.Store = &events.StoreState{Engine: events.EngineKV, Version: version, Revision: strconv.FormatInt(version, 10)}
		})
		seq = mustPublish(t, hub, rotated, seq)
	}
	foreign := changeOf(func(change *events.Change) { change.Cluster, change.Time = "hub", time.Now() })
	mustPublish(t, hub, foreign, 0)

	options := c.options()
	options.StoresFrom = []string{"hub"}
	_, stop := c.start(options)
	rotate(7)
	c.wantLast("web", "started content-changed")
	stop()
	if got := c.patches(); !slices.Equal(got, []string{"web"}) {
		t.Errorf("patched were %v, want what reads the store, and nothing for the Secret of another cluster", got)
	}

	// The next leader finds what the rollout is for, so that it is measured.
	subject := events.OutcomeSubject("demo", events.Workload{Kind: "deployment", Namespace: "shop", Name: "web"})
	testkit.Await(t, "the time of the change that it is for is found", func(ctx context.Context) bool {
		stored, err := c.bus.Last(ctx, subject)
		if err != nil {
			return false
		}
		started, err := stored.Outcome()
		return err == nil && len(resumerOf(options, c.bus).changed(ctx, started)) == 1
	})
}
