package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// TestASpokeIsHeldToItsOwnCluster has the NATS of a spoke in the hands of someone else, with its keys, and tries what it can do on the hub to
// the others.
func TestASpokeIsHeldToItsOwnCluster(t *testing.T) {
	t.Parallel()
	h := renderWithStores(t, "hub", "hub", "us", "eu:leaf")
	intruder := h.letIn("eu")
	h.start("hub", "us", "eu")
	asked := h.overhear(intruder)
	h.declareFleet()
	h.publish("us", "secret", "db", "us/1")
	h.caughtUp("us")

	t.Run("what it delivers as another cluster is not in FLEET, and it is named", func(t *testing.T) { h.with(t).impersonate(intruder, asked, "eu", "us") })
	t.Run("it cannot change the consumer of the actuator whose stores it reads", func(t *testing.T) { h.with(t).changeConsumer(intruder) })
	t.Run("it cannot reach the streams and consumers of others", func(t *testing.T) { h.with(t).reachOut(intruder) })
}

// retried has a publication tried again for ten seconds: a server of a hub that has not heard yet of a new stream answers that nobody takes it.
var retried = jetstream.WithRetryAttempts(40)

// publish publishes a message without an event as a cluster's watcher.
func (h *hub) publish(cluster, kind, name, id string) {
	h.Helper()
	subject := "keyturn.v1." + cluster + "." + kind + ".shop." + name
	if _, err := h.jetstream(cluster+"-watcher").Publish(h.Context(), subject, nil, jetstream.WithMsgID(id), retried); err != nil {
		h.Fatal(err)
	}
}

// overhear has an intruder listen to what his server answers the hub, when that asks for the events of the cluster.
func (h *hub) overhear(intruder string) <-chan *nats.Msg {
	h.Helper()
	connection := h.connect(intruder, nil)
	answers := make(chan *nats.Msg, 64)
	if _, err := connection.ChanSubscribe("_R_.>", answers); err != nil {
		h.Fatal(err)
	}
	if err := connection.Flush(); err != nil {
		h.Fatal(err)
	}
	return answers
}

// impersonate has the server of a cluster deliver an event of another one, in place of the consumer from which the hub takes its events.
func (h *hub) impersonate(intruder string, answers <-chan *nats.Msg, own, victim string) {
	var taken jetstream.ConsumerInfo
	testkit.Await(h.T, "the hub takes events of "+own, func(context.Context) bool {
		select {
		case msg := <-answers:
			return json.Unmarshal(msg.Data, &taken) == nil && strings.HasPrefix(taken.Config.DeliverSubject, "keyturn.fleet."+own+".")
		default:
			return false
		}
	})
	js := h.jetstream(intruder)
	stream, err := js.Stream(h.Context(), events.StreamChanges)
	if err != nil {
		h.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.Subjects = []string{"keyturn.v1.>"}
	if _, err := js.UpdateStream(h.Context(), config); err != nil {
		h.Fatal(err)
	}
	forged := "keyturn.v1." + victim + ".secret.shop.db"
	if err := js.DeleteConsumer(h.Context(), events.StreamChanges, taken.Name); err != nil {
		h.Fatal(err)
	}
	if _, err := js.CreatePushConsumer(h.Context(), events.StreamChanges, jetstream.ConsumerConfig{
		Name: taken.Name, DeliverSubject: taken.Config.DeliverSubject, FilterSubjects: []string{"keyturn.v1." + own + ".>", forged},
		AckPolicy: jetstream.AckNonePolicy, FlowControl: true, IdleHeartbeat: taken.Config.IdleHeartbeat, MaxDeliver: 1,
	}); err != nil {
		h.Fatal(err)
	}
	if _, err := js.Publish(h.Context(), forged, nil, jetstream.WithMsgID("forged")); err != nil {
		h.Fatal(err)
	}
	h.publish(own, "secret", "after", own+"/2")
	h.publish(victim, "secret", "other", victim+"/2")
	h.caughtUp(own, victim)

	if got := messages(h.T, h.jetstream("fleet-reader"), "FLEET", forged); len(got) != 1 || got[0].id != victim+"/1" {
		h.Errorf("FLEET has %v as events of %s, want the one that it has published", got, victim)
	}
	reader, err := events.OpenFleet(h.Context(), h.connect("fleet-reader", nil), "FLEET")
	if err != nil {
		h.Fatal(err)
	}
	members, err := reader.Members(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	for _, member := range members {
		foreign := []string(nil)
		if member.Cluster == own {
			foreign = []string{victim}
		}
		if !member.Checked || !slices.Equal(member.ForeignClusters, foreign) {
			h.Errorf("%s: checked %t, with events of %v, want those of %v", member.Cluster, member.Checked, member.ForeignClusters, foreign)
		}
	}
	want := map[string]int64{own: 1}
	for _, member := range members {
		want[member.Cluster] += 0
	}
	measured := h.measureForeign()
	testkit.Await(h.T, "an actuator of the hub measures it", func(context.Context) bool { return maps.Equal(measured(), want) },
		func() string { return fmt.Sprintf("it measures %v, want %v", measured(), want) })
}

// measureForeign counts as an actuator of the hub does, and returns what its metric says of each cluster.
func (h *hub) measureForeign() (measured func() map[string]int64) {
	h.Helper()
	reader := sdkmetric.NewManualReader()
	watch, err := events.NewFleetWatch("FLEET", sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter(""), nil)
	if err != nil {
		h.Fatal(err)
	}
	connection := h.connect("fleet-reader", nil)
	testkit.Run(h.T, "watch of FLEET", func(ctx context.Context) error {
		watch.Run(ctx, connection, patience)
		return nil
	})
	return func() map[string]int64 {
		var collected metricdata.ResourceMetrics
		if err := reader.Collect(h.Context(), &collected); err != nil {
			h.Fatal(err)
		}
		counts := make(map[string]int64)
		for _, scope := range collected.ScopeMetrics {
			for _, m := range scope.Metrics {
				gauge, ok := m.Data.(metricdata.Gauge[int64])
				if !ok {
					h.Fatalf("%s is no gauge", m.Name)
				}
				for _, point := range gauge.DataPoints {
					cluster, _ := point.Attributes.Value("from_cluster")
					counts[cluster.AsString()] = point.Value
				}
			}
		}
		return counts
	}
}

// changeConsumer asks the hub for a change of the consumer of the actuator that acts on the events about secret stores, by the way on which a
// spoke asks for those events.
func (h *hub) changeConsumer(intruder string) {
	const durable = "actuator-hub"
	owner := h.jetstream("hub-operator")
	want := jetstream.ConsumerConfig{Durable: durable, FilterSubjects: []string{"keyturn.v1.hub.secret.>", "keyturn.v1.hub.openbao.>"}, AckPolicy: jetstream.AckExplicitPolicy}
	if _, err := owner.CreateConsumer(h.Context(), events.StreamChanges, want); err != nil {
		h.Fatal(err)
	}
	connection := h.connect(intruder, nil)
	// ask sends a request and the next one, which the hub allows. The answer to that says that the first was dealt with.
	answers, err := connection.SubscribeSync("$JSC.R.>")
	if err != nil {
		h.Fatal(err)
	}
	ask := func(name, reply string) {
		h.Helper()
		config := jetstream.ConsumerConfig{Name: name, FilterSubject: "keyturn.v1.hub.openbao.>", AckPolicy: jetstream.AckExplicitPolicy}
		if name == durable {
			config.Durable = durable
		}
		request, err := json.Marshal(map[string]any{"stream_name": events.StreamChanges, "config": config})
		if err != nil {
			h.Fatal(err)
		}
		if err := connection.PublishRequest("$JS.hub.API.CONSUMER.CREATE.CHANGES."+name+".keyturn.v1.hub.openbao.>", reply, request); err != nil {
			h.Fatal(err)
		}
	}
	testkit.Await(h.T, "the hub has dealt with the requests", func(context.Context) bool {
		ask(durable, "$JSC.R.attack")
		ask("mine", "$JSC.R.permitted")
		for {
			answer, err := answers.NextMsg(patience / 10)
			if err != nil {
				return false
			}
			if answer.Subject == "$JSC.R.permitted" {
				return true
			}
		}
	})
	consumer, err := owner.Consumer(h.Context(), events.StreamChanges, durable)
	if err != nil {
		h.Fatal(err)
	}
	if got := consumer.CachedInfo().Config; !slices.Equal(got.FilterSubjects, want.FilterSubjects) {
		h.Errorf("the consumer of the hub's actuator has the filters %v %q, want %v", got.FilterSubjects, got.FilterSubject, want.FilterSubjects)
	}
}

// reachOut sends what would change streams and consumers of others, if the hub let it through.
func (h *hub) reachOut(intruder string) {
	connection := h.connect(intruder, nil)
	streams := func() map[string]jetstream.StreamConfig {
		found := map[string]jetstream.StreamConfig{}
		for _, account := range []string{"hub", "us", "fleet"} {
			lister := h.jetstream(account + "-operator").ListStreams(h.Context())
			for info := range lister.Info() {
				found[account+"/"+info.Config.Name] = info.Config
			}
			if err := lister.Err(); err != nil {
				h.Fatal(err)
			}
		}
		return found
	}
	before := streams()
	if len(before) != 3+3+4 {
		h.Fatalf("the hub has %d streams, want 10", len(before))
	}
	for _, domain := range []string{"$JS.hub.API", "$JS.us.API", "$JS.fleet.API"} {
		for _, request := range []string{
			"STREAM.DELETE.CHANGES", "STREAM.PURGE.CHANGES", "STREAM.DELETE.FLEET", "STREAM.DELETE.FLEET-us", "STREAM.PURGE.FLEET-us",
			"CONSUMER.PAUSE.CHANGES.actuator-hub", "CONSUMER.DELETE.CHANGES.actuator-hub", "CONSUMER.DELETE.CHANGES.actuator-us",
		} {
			answer, err := connection.Request(domain+"."+request, nil, patience/60)
			if err == nil {
				h.Errorf("%s.%s: answered %s", domain, request, answer.Data)
			} else if !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, nats.ErrTimeout) {
				h.Errorf("%s.%s: %v", domain, request, err)
			}
		}
	}
	if after := streams(); len(after) != len(before) {
		h.Errorf("there are %d streams left of %d", len(after), len(before))
	}
	if got := messages(h.T, h.jetstream("us-actuator"), events.StreamChanges, "keyturn.v1.us.>"); len(got) == 0 {
		h.Error("the stream of us is empty")
	}
}

// TestAClusterFillsItsOwnShareOfTheHub publishes on the hub until it is refused.
func TestAClusterFillsItsOwnShareOfTheHub(t *testing.T) {
	t.Parallel()
	h := render(t, "eu", "us")
	substitute(t, filepath.Join(h.Dir, "hub", "eu.conf"), "max_file: 8192MB", "max_file: 48MB")
	h.start()
	h.declare("eu", "eu-changes")
	h.declare("us", "us-changes")
	js := h.jetstream("eu-watcher")
	large := make([]byte, 512<<10)
	var refused error
	// Three replicas of 32 of these are 48 MiB.
	for i := 0; i < 64 && refused == nil; i++ {
		subject := "keyturn.v1.eu.secret.shop.db-" + strings.Repeat("x", i)
		_, refused = js.Publish(t.Context(), subject, large)
	}
	var limit *jetstream.APIError
	if !errors.As(refused, &limit) || !strings.Contains(limit.Description, "resource limits exceeded") {
		t.Errorf("got %v, want a refusal for the limit of the account", refused)
	}
	h.publish("us", "secret", "db", "us/1")
}
