package actuate

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func TestTheGaugesShowWhatTheEngineHasOnItsHands(t *testing.T) {
	a, reader := measured(t)
	lead(t, a)
	w := workloadOf(t, "auto", wholeDB, nil)
	a.index.Listed(w, "")
	l := newLoop(a.surroundings, unwritten(a))
	for name, reason := range map[string]plan.Reason{"one": plan.Limit, "two": plan.Limit, "three": plan.PeerFailed, "four": plan.OnHold, "five": plan.KindNotServed} {
		l.debounce.hold(l.debounce.pend(workloadOf(t, "auto", wholeDB, named(name, nil)), changeOf(nil)), reason)
	}
	hourAgo := changeOf(func(c *events.Change) { c.Time = l.now().Add(-time.Hour) })
	l.debounce.hold(l.debounce.pend(workloadOf(t, "auto", wholeDB, named("four", nil)), hourAgo), plan.OnHold)
	l.debounce.pend(workloadOf(t, "auto", wholeDB, named("settling", nil)), changeOf(nil))
	l.rollouts.following.follow(workload.Key{Kind: "deployment", Namespace: "shop", Name: "a"}, &rollout{})
	l.rollouts.following.follow(workload.Key{Kind: "statefulset", Namespace: "shop", Name: "b"}, &rollout{})
	l.rollouts.peers.add(workload.Key{Kind: "statefulset", Namespace: "shop", Name: "c"})
	l.takeSnapshot()

	collected := collectLed(t, reader)
	for _, tt := range []struct {
		name, key, label string
		want             int64
	}{
		{"keyturn.leader", "", "", 1},
		{"keyturn.workloads", "kind", "deployment", 1},
		{"keyturn.workloads", "kind", "cronjob", 0},
		{"keyturn.workloads.pending", "", "", 6},
		{"keyturn.workloads.held", "reason", "on-hold", 1},
		{"keyturn.workloads.held.oldest", "reason", "on-hold", 3600},
		{"keyturn.workloads.held.oldest", "reason", "limit-reached", 0},
		{"keyturn.workloads.held", "reason", "limit-reached", 2},
		{"keyturn.workloads.held", "reason", "peer-failed", 1},
		{"keyturn.workloads.held", "reason", "kind-not-served", 1},
		{"keyturn.workloads.held", "reason", "lower-wave", 0},
		{"keyturn.rollouts.active", "kind", "deployment", 1},
		{"keyturn.rollouts.active", "kind", "statefulset", 1},
		{"keyturn.rollouts.failing", "kind", "statefulset", 1},
		{"keyturn.rollouts.failing", "kind", "deployment", 0},
		{"keyturn.consumer.pending", "", "", 1},
		{"keyturn.consumer.ack.pending", "", "", 1},
		{"reloader.workqueue.depth", "", "", 2},
	} {
		label := attribute.KeyValue{}
		if tt.key != "" {
			label = attribute.String(tt.key, tt.label)
		}
		if got, ok := value(collected[tt.name], label); !ok || got != tt.want {
			t.Errorf("%s{%s}: got %d, there: %t, want %d", tt.name, tt.label, got, ok, tt.want)
		}
	}
}

func TestAnActuatorThatCannotReachNATSShowsAllButItsConsumer(t *testing.T) {
	a, reader := measured(t)
	nc, _ := natstest.Streams(t)
	var err error
	if a.bus, err = events.Open(t.Context(), nc, testOptions().Cluster, nil); err != nil {
		t.Fatal(err)
	}
	a.leading.Store(true)
	a.snapshots.Store(&snapshot{pending: 3})
	nc.Close()
	collected := collect(t, reader) // An exporter that pushes drops what is collected with an error.
	for name, want := range map[string]int64{"keyturn.leader": 1, "keyturn.workloads.pending": 3} {
		if got, ok := value(collected[name], attribute.KeyValue{}); !ok || got != want {
			t.Errorf("%s is %d, there: %t, want %d", name, got, ok, want)
		}
	}
	if _, ok := collected["keyturn.consumer.pending"]; ok {
		t.Error("there is keyturn.consumer.pending")
	}
}

func TestADryRunIsShownByEachActuator(t *testing.T) {
	for _, tt := range []struct {
		name string
		dry  bool
		want int64
	}{
		{"one that rolls", false, 0},
		{"one that patches nothing", true, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reader, options := sdkmetric.NewManualReader(), testOptions()
			options.Meter, options.DryRun = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter(""), tt.dry
			if _, err := New(options); err != nil {
				t.Fatal(err)
			}
			if got, ok := value(collect(t, reader)["keyturn.dry.run"], attribute.KeyValue{}); !ok || got != tt.want {
				t.Errorf("keyturn.dry.run is %d, there: %t, want %d", got, ok, tt.want)
			}
		})
	}
}

func TestAnActuatorThatStandsByShowsNothingOfTheWork(t *testing.T) {
	a, reader := measured(t)
	a.snapshots.Store(&snapshot{pending: 3})
	collected := collect(t, reader)
	if got, ok := value(collected["keyturn.leader"], attribute.KeyValue{}); !ok || got != 0 {
		t.Errorf("keyturn.leader is %d, there: %t", got, ok)
	}
	for _, name := range []string{"keyturn.workloads.pending", "keyturn.consumer.pending", "keyturn.rollouts.active"} {
		if _, ok := collected[name]; ok {
			t.Errorf("there is %s", name)
		}
	}
}

func TestTheNextActuatorKnowsWhenTheChangesOfARolloutWereSeen(t *testing.T) {
	nc, _ := natstest.Streams(t)
	bus, err := events.Open(t.Context(), nc, testOptions().Cluster, nil)
	if err != nil {
		t.Fatal(err)
	}
	stream := resumerOf(testOptions(), bus)
	change := changeOf(func(c *events.Change) { c.Time = written })
	mustPublish(t, bus, change, 0)
	for _, tt := range []struct {
		name    string
		sources []events.OutcomeSource
		// reads is how many of the sources are read on the stream.
		reads uint64
		want  []time.Time
	}{
		{"the last event of the source", []events.OutcomeSource{{Source: "secret/db", Event: change.ID()}}, 1, []time.Time{written}},
		{"not an earlier one", []events.OutcomeSource{{Source: "secret/db", Event: "uid/90"}}, 1, nil},
		{"not of a source that is gone", []events.OutcomeSource{{Source: "secret/gone", Event: change.ID()}}, 1, nil},
		{"nor of one that cannot be read", []events.OutcomeSource{{Source: "secret", Event: change.ID()}}, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			started := events.Outcome{Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: "web"}, Sources: tt.sources}
			var got []time.Time
			// Without an answer there are no times, either.
			testkit.Await(t, "the stream answers", func(ctx context.Context) bool {
				earlier := nc.Stats().InMsgs
				got = stream.changed(ctx, started)
				return nc.Stats().InMsgs >= earlier+tt.reads
			})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
