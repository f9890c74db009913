package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
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
	// The cluster that watches the stores is called like the domain of the hub's servers.
	h.publish("hub", aPath, "hub/1")
	h.haveOf("hub", "hub/1", "us", "eu")
	asked := h.overhear(intruder)
	h.declareFleet()
	h.publish("us", "secret.shop.db", "us/1")
	h.caughtUp("us")

	t.Run("what it delivers as another cluster is not in FLEET, and it is named", func(t *testing.T) { h.with(t).impersonate(intruder, asked, "eu", "us") })
	t.Run("it cannot change the consumer of the projector of the cluster whose stores it reads", func(t *testing.T) { h.with(t).changeConsumer(intruder) })
	t.Run("it cannot reach the streams and consumers of others", func(t *testing.T) { h.with(t).reachOut(intruder) })
}

// overhear has an intruder listen to what his server answers the hub, when that asks for the events of the cluster.
func (h *hub) overhear(intruder string) <-chan *nats.Msg {
	h.Helper()
	connection := h.connect(intruder, nil)
	answers := make(chan *nats.Msg, 64)
	if _, err := connection.ChanSubscribe("_R_.>", answers); err != nil {
		h.Fatal(err)
	}
	testkit.Must(h, connection.Flush())
	return answers
}

// impersonate has the server of a cluster deliver an event of another one, in place of the consumer from which the hub takes its events.
func (h *hub) impersonate(intruder string, answers <-chan *nats.Msg, own, victim string) {
	var taken jetstream.ConsumerInfo // The newest: a hub that hears nothing of one for ten seconds makes another one.
	testkit.Await(h.T, "the hub takes events of "+own, func(context.Context) bool {
		for {
			select {
			case msg := <-answers:
				var made jetstream.ConsumerInfo
				if json.Unmarshal(msg.Data, &made) == nil && strings.HasPrefix(made.Config.DeliverSubject, "keyturn.fleet."+own+".") {
					taken = made
				}
			default:
				return taken.Name != ""
			}
		}
	})
	js := h.jetstream(intruder)
	stream, err := js.Stream(h.Context(), events.StreamChanges)
	testkit.Must(h, err)
	config := stream.CachedInfo().Config
	config.Subjects = []string{"keyturn.v1.>"}
	if _, err := js.UpdateStream(h.Context(), config); err != nil {
		h.Fatal(err)
	}
	forged := "keyturn.v1." + victim + ".secret.shop.db"
	testkit.Must(h, js.DeleteConsumer(h.Context(), events.StreamChanges, taken.Name))
	if _, err := js.CreatePushConsumer(h.Context(), events.StreamChanges, jetstream.ConsumerConfig{
		Name: taken.Name, DeliverSubject: taken.Config.DeliverSubject, FilterSubjects: []string{"keyturn.v1." + own + ".>", forged},
		AckPolicy: jetstream.AckNonePolicy, FlowControl: true, IdleHeartbeat: taken.Config.IdleHeartbeat, MaxDeliver: 1,
	}); err != nil {
		h.Fatal(err)
	}
	h.publishMsg(js, &nats.Msg{Subject: forged}, jetstream.WithMsgID("forged"))
	h.publish(own, "secret.shop.after", own+"/2")
	h.publish(victim, "secret.shop.other", victim+"/2")
	h.caughtUp(own, victim)

	if got := messages(h.T, h.jetstream("fleet-reader"), "FLEET", forged); len(got) != 1 || got[0].id != victim+"/1" {
		h.Errorf("FLEET has %v as events of %s, want the one that it has published", got, victim)
	}
	reader, err := bus.OpenFleet(h.Context(), h.connect("fleet-reader", nil), "FLEET")
	testkit.Must(h, err)
	var members []bus.Member
	testkit.Await(h.T, "each cluster is checked, and only "+own+" has events of another: "+victim, func(ctx context.Context) bool {
		members, err = reader.Members(ctx)
		return err == nil && len(members) > 0 && !slices.ContainsFunc(members, func(member bus.Member) bool {
			foreign := []string(nil)
			if member.Cluster == own {
				foreign = []string{victim}
			}
			return !member.Checked || !slices.Equal(member.ForeignClusters, foreign)
		})
	}, func() string { return fmt.Sprintf("got %+v, %v", members, err) })
}

// changeConsumer asks the hub for a change of the consumer of its cluster's projector, by the way on which a spoke asks for the events about secret
// stores. It knows what the name begins with.
func (h *hub) changeConsumer(intruder string) {
	const known, durable = "projector-hub", "projector-hub-5f2b8c1e9a3d7046"
	owner := h.jetstream("hub-operator")
	want := jetstream.ConsumerConfig{Durable: durable, FilterSubject: "keyturn.v1.hub.secret.>", AckPolicy: jetstream.AckExplicitPolicy}
	if _, err := owner.CreateConsumer(h.Context(), events.StreamChanges, want); err != nil {
		h.Fatal(err)
	}
	h.attack(intruder, func(connection *nats.Conn) { h.askFor(connection, known, known, attacks+known) })
	consumer, err := owner.Consumer(h.Context(), events.StreamChanges, durable)
	testkit.Must(h, err)
	if got := consumer.CachedInfo().Config; got.FilterSubject != want.FilterSubject {
		h.Errorf("the consumer of the hub's projector has the filter %q, want %q", got.FilterSubject, want.FilterSubject)
	}
}

// attacks begins the subjects on which attacks want their answers. The permissions of a leaf node let those below $JSC.R. through.
const attacks = "$JSC.R.attack."

// attack sends requests to the hub, over the leaf node, then one that the hub allows and, once that is answered, another one. The answer to that says
// that the requests of the attack were dealt with: a server has several workers for those of leaf nodes, which may answer the first one earlier. It
// returns the answers to the attack.
func (h *hub) attack(intruder string, send func(connection *nats.Conn)) (answers []*nats.Msg) {
	h.Helper()
	const permitted = "$JSC.R.permitted"
	connection := h.connect(intruder, nil)
	received := make(chan *nats.Msg, 1024)
	if _, err := connection.ChanSubscribe("$JSC.R.>", received); err != nil {
		h.Fatal(err)
	}
	testkit.Await(h.T, "the hub has dealt with the requests", func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, answered)
		defer cancel()
		send(connection)
		awaited := permitted
		h.askFor(connection, "mine", "", awaited)
		for {
			select {
			case msg := <-received:
				untaken := msg.Header.Get("Status") == "503" // the server of the intruder knows nobody on the hub who takes the request
				switch {
				case strings.HasPrefix(msg.Subject, attacks) && !untaken:
					answers = append(answers, msg)
				case msg.Subject != awaited: // an attack that nobody took, or an answer to an earlier try
				case untaken:
					return false
				case awaited == permitted:
					awaited = permitted + ".again"
					h.askFor(connection, "mine", "", awaited)
				default:
					return true
				}
			case <-ctx.Done():
				return false
			}
		}
	})
	return answers
}

// askFor asks the hub for a consumer of events about secret stores, by the way on which a spoke asks for those events.
func (h *hub) askFor(connection *nats.Conn, name, durable, reply string) {
	h.Helper()
	config := jetstream.ConsumerConfig{
		Name: name, Durable: durable, FilterSubject: "keyturn.v1.hub.openbao.>", AckPolicy: jetstream.AckExplicitPolicy,
	}
	request, err := json.Marshal(map[string]any{"stream_name": events.StreamChanges, "config": config})
	testkit.Must(h, err)
	testkit.Must(h, connection.PublishRequest("$JS.hub.API.CONSUMER.CREATE.CHANGES."+name+".keyturn.v1.hub.openbao.>", reply, request))
}

// reachOut sends what would change streams and consumers of others, if the hub let it through.
func (h *hub) reachOut(intruder string) {
	streams := func() map[string]jetstream.StreamConfig {
		found := map[string]jetstream.StreamConfig{}
		for _, account := range []string{"hub", "us", "fleet"} {
			operator := h.jetstream(account + "-operator")
			testkit.Await(h.T, "the streams of "+account+" are listed", func(ctx context.Context) bool {
				lister := operator.ListStreams(ctx)
				for info := range lister.Info() {
					found[account+"/"+info.Config.Name] = info.Config
				}
				return lister.Err() == nil
			})
		}
		return found
	}
	before := streams()
	if len(before) != 3+3+4 {
		h.Fatalf("the hub has %d streams, want 10", len(before))
	}
	h.makeConsumers("hub", "us")
	consumers := h.consumers("hub", "us")
	if len(consumers) != 2 {
		h.Fatalf("got the consumers %v, want those of two webhooks", consumers)
	}
	// Without a time, it would end a pause.
	const pause = `{"pause_until":"2999-01-01T00:00:00Z"}`
	answers := h.attack(intruder, func(connection *nats.Conn) {
		for _, domain := range []string{"$JS.hub.API", "$JS.us.API", "$JS.fleet.API"} {
			for request, body := range map[string]string{
				"STREAM.DELETE.CHANGES": "", "STREAM.PURGE.CHANGES": "", "STREAM.DELETE.FLEET": "", "STREAM.DELETE.FLEET-us": "", "STREAM.PURGE.FLEET-us": "",
				"CONSUMER.PAUSE.CHANGES.webhook-hub": pause, "CONSUMER.DELETE.CHANGES.webhook-hub": "", "CONSUMER.DELETE.CHANGES.webhook-us": "",
			} {
				testkit.Must(h, connection.PublishRequest(domain+"."+request, attacks+domain+"."+request, []byte(body)))
			}
		}
	})
	for _, answer := range answers {
		h.Errorf("%s: answered %s", strings.TrimPrefix(answer.Subject, attacks), answer.Data)
	}
	if after := streams(); len(after) != len(before) {
		h.Errorf("there are %d streams left of %d", len(after), len(before))
	}
	if diff := cmp.Diff(consumers, h.consumers("hub", "us")); diff != "" {
		h.Errorf("consumers of webhooks (-before +after):\n%s", diff)
	}
	if got := messages(h.T, h.jetstream("us-actuator"), events.StreamChanges, "keyturn.v1.us.>"); len(got) == 0 {
		h.Error("the stream of us is empty")
	}
}

// makeConsumers makes the consumer of the webhook of each cluster, unless there is one.
func (h *hub) makeConsumers(clusters ...string) {
	h.Helper()
	for _, cluster := range clusters {
		operator := h.jetstream(cluster + "-operator")
		config := jetstream.ConsumerConfig{Durable: "webhook-" + cluster, AckPolicy: jetstream.AckExplicitPolicy}
		var err error
		testkit.Await(h.T, "the consumer of the webhook of "+cluster+" is there", func(ctx context.Context) bool {
			ctx, cancel := context.WithTimeout(ctx, answered)
			defer cancel()
			_, err = operator.CreateConsumer(ctx, events.StreamChanges, config)
			return err == nil || errors.Is(err, jetstream.ErrConsumerExists)
		}, func() string { return fmt.Sprint(err) })
	}
}

// consumers returns the configuration of the consumer of the webhook of each cluster that has one.
func (h *hub) consumers(clusters ...string) map[string]jetstream.ConsumerConfig {
	h.Helper()
	found := map[string]jetstream.ConsumerConfig{}
	for _, cluster := range clusters {
		operator := h.jetstream(cluster + "-operator")
		var err error
		testkit.Await(h.T, "the consumer of the webhook of "+cluster+" is read", func(ctx context.Context) bool {
			ctx, cancel := context.WithTimeout(ctx, answered)
			defer cancel()
			var consumer jetstream.Consumer
			if consumer, err = operator.Consumer(ctx, events.StreamChanges, "webhook-"+cluster); err == nil {
				found[cluster] = consumer.CachedInfo().Config
			}
			return err == nil || errors.Is(err, jetstream.ErrConsumerNotFound)
		}, func() string { return fmt.Sprint(err) })
	}
	return found
}
