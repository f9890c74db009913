package bus

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// componentServer is the embedded NATS with files of deploy beside that of the programs. The files of the users' keys are in dir.
func componentServer(t *testing.T, files map[string]string) (s *embedded.Server, dir string) {
	t.Helper()
	dir = t.TempDir()
	files["programs.conf"] = "programs/nats.conf"
	for name, path := range files {
		content, err := os.ReadFile("../../deploy/" + path)
		testkit.Must(t, err)
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	testkit.SetNATSVariables(t, dir, "watcher", "actuator", "reader", "audit", "projector")
	s, err := embedded.Start(embedded.Options{StoreDir: testkit.StoreDir(t), ConfigFile: filepath.Join(dir, "nats.conf")}, nil)
	testkit.Must(t, err)
	t.Cleanup(s.Shutdown)
	return s, dir
}

// connectTo connects as a user of a componentServer, and opens the streams, which the actuator declares.
func connectTo(t *testing.T, s *embedded.Server, dir, user string, options ConnectOptions) (*nats.Conn, *Bus, *testkit.Log) {
	t.Helper()
	log := &testkit.Log{}
	options.URL, options.Cluster, options.Logger = s.ClientURL(), testCluster, log.Logger()
	options.CAFile, options.CredsFile = filepath.Join(dir, "ca.crt"), filepath.Join(dir, user+".nk")
	nc, err := Connect(t.Context(), options)
	testkit.Must(t, err)
	t.Cleanup(nc.Close)
	if user == "actuator" {
		testkit.Must(t, declareWith(t.Context(), nc))
	}
	b, err := Open(t.Context(), nc, testCluster, nil)
	testkit.Must(t, err)
	return nc, b, log
}

// Whoever takes over what receives audits can claim that secrets in stores were written. It sees and claims nothing else.
func TestTheReceiverOfAuditsPublishesChangesInStoresAndNothingElse(t *testing.T) {
	s, dir := componentServer(t, map[string]string{"nats.conf": "components/openbao-audit/nats.conf"})
	connectTo(t, s, dir, "actuator", ConnectOptions{Role: "actuator"})
	_, watcher, _ := connectTo(t, s, dir, "watcher", ConnectOptions{Role: "watcher"})
	secret := version("db", "1")
	mustPublish(t, watcher, secret, 0)

	nc, audit, log := connectTo(t, s, dir, "audit", ConnectOptions{Role: "watcher"})
	rotated := changeOf(events.KindOpenBao, events.VerbRotated)
	rotated.Cluster = testCluster
	seq := mustPublish(t, audit, rotated, 0)
	if state := readState(t, audit, []string{events.KindFilter(testCluster, events.KindOpenBao)}); len(state) != 1 {
		t.Errorf("the state is %v, want the one event", state)
	}
	if last, err := lastOn(t, audit, events.Subject(testCluster, rotated.Source)); err != nil || last.Seq != seq {
		t.Errorf("its last event: got %d, %v, want %d", last.Seq, err, seq)
	}
	if _, err := answer(t, func() (Extent, error) { return audit.Extent(t.Context()) }); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "ermissions") {
		t.Errorf("it was refused what it needs: %s", log)
	}

	refused := func(what string, try func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := try(ctx); err == nil {
			t.Errorf("%s: it succeeds, want that it is refused", what)
		}
	}
	refused("publishing the change of a Secret", func(ctx context.Context) error {
		_, err := audit.PublishChange(ctx, version("db", "2"), 1)
		return err
	})
	refused("reading the event of a Secret", func(ctx context.Context) error {
		_, err := audit.Last(ctx, events.Subject(testCluster, secret.Source))
		return err
	})
	refused("reading the events of all Secrets", func(ctx context.Context) error {
		return audit.State(ctx, []string{events.KindFilter(testCluster, events.KindSecret)}, func(events.Stored) error { return nil })
	})
	refused("claiming the cluster", func(ctx context.Context) error { return audit.Claim(ctx, "another", "") })
	for _, subject := range []string{"_INBOX_watcher.>", "_INBOX.>", "keyturn.>"} {
		testkit.Must(t, errIn(nc.SubscribeSync(subject)))
		testkit.Eventually(t, "a subscription of "+subject+" is refused", func() bool {
			return strings.Contains(log.String(), `Subscription to \"`+subject) || strings.Contains(log.String(), `subscription to \"`+subject)
		})
	}
}

// Whoever takes over the projector sees which Secrets change. It claims no change and no outcome, and keeps others from nothing.
func TestTheProjectorReadsChangesOfSecretsAndPublishesWhatItDid(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"alone": {"nats.conf": "components/projector/nats.conf"},
		"with a receiver of audits": {
			"nats.conf": "components/projector/with-audit/nats.conf", "audit.conf": "components/openbao-audit/nats.conf",
			"projector.conf": "components/projector/nats.conf",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := componentServer(t, files)
			open := func(user string) (*nats.Conn, *Bus, *testkit.Log) {
				t.Helper()
				return connectTo(t, s, dir, user, ConnectOptions{Role: user})
			}
			_, actuator, _ := open("actuator")
			_, watcher, _ := open("watcher")
			secret := version("db", "1")
			mustPublish(t, watcher, secret, 0)
			webhook := consume(t, actuator, ConsumeOptions{Durable: "webhook-" + testCluster})
			defer webhook.stop()
			held := webhook.next()
			theWebhooks := actuator.secrets.consumerName("webhook-" + testCluster)

			nc, projector, log := open("projector")
			options := ConsumeOptions{
				Durable: "projector-" + testCluster, FilterSubjects: []string{events.KindFilter(testCluster, events.KindSecret)}, WithoutDeadLetters: true,
			}
			c := consume(t, projector, options)
			defer c.stop()
			c.next().Done(t.Context(), nil)
			own := projector.secrets.consumerName(options.Durable)
			published(t, func() error { return projector.PublishProjection(t.Context(), projection()) })
			// What is no event is forgotten, and left to the actuator's dead letters.
			broken := messageWith(t, version("web", "2"))
			broken.Subject = version("other", "2").Subject()
			testkit.Must(t, errIn(watcher.js.PublishMsg(t.Context(), broken)))
			testkit.Await(t, "everything is acked", func(ctx context.Context) bool {
				return isDrained(ctx, actuator, own)
			})
			if strings.Contains(log.String(), "ermissions") {
				t.Errorf("it was refused what it needs: %s", log)
			}

			for _, subject := range []string{
				"keyturn.v1." + testCluster + ".secret.shop.db", "keyturn.v1." + testCluster + ".rollout.shop.deployment-web",
				"keyturn.history.v1." + testCluster + ".rollout.shop.deployment-web", "keyturn.deadletter.v1." + testCluster + ".secret.shop.db",
				"$JS.API.DIRECT.GET.CHANGES.keyturn.v1." + testCluster + ".configmap.shop.app",
				"$JS.API.CONSUMER.CREATE.CHANGES.projector-" + testCluster + ".keyturn.v1." + testCluster + ".>",
				"$JS.API.CONSUMER.CREATE.CHANGES.projector-" + testCluster, "$JS.API.CONSUMER.CREATE.CHANGES",
				"$JS.API.CONSUMER.CREATE.HISTORY.projector-" + testCluster, "$JS.API.CONSUMER.DURABLE.CREATE.CHANGES.projector-" + testCluster,
				"$JS.API.CONSUMER.DELETE.CHANGES.webhook-" + testCluster, "$JS.API.STREAM.PURGE.CHANGES", "$JS.API.STREAM.UPDATE.HISTORY",
			} {
				testkit.Must(t, nc.Publish(subject, []byte("+ACK")))
				testkit.Eventually(t, "a message on "+subject+" is refused", func() bool { return strings.Contains(log.String(), subject) })
			}
			for _, subject := range []string{"_INBOX_watcher.>", "_INBOX.>", "keyturn.>"} {
				testkit.Must(t, errIn(nc.SubscribeSync(subject)))
				testkit.Eventually(t, "a subscription of "+subject+" is refused", func() bool {
					return strings.Contains(strings.ToLower(log.String()), `subscription to \"`+strings.ToLower(subject))
				})
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := projector.PublishChange(ctx, version("db", "3"), 3); err == nil {
				t.Error("it publishes a change of a Secret")
			}
			if _, inFlight, err := left(t.Context(), actuator, theWebhooks); err != nil || inFlight == 0 {
				t.Errorf("in flight to the webhook: got %d, %v, want what it has not acked", inFlight, err)
			}
			held.Done(t.Context(), nil)
		})
	}
}

// Who may read a stream by a consumer may ask any other of it for its messages, and change it, if they know its name. With a name that could be
// guessed, each of these users had the changes of the webhook delivered, or made it deaf.
func TestNoUserKnowsTheNamesOfTheProgramsConsumers(t *testing.T) {
	s, dir := componentServer(t, map[string]string{
		"nats.conf": "components/projector/with-audit/nats.conf", "audit.conf": "components/openbao-audit/nats.conf",
		"projector.conf": "components/projector/nats.conf",
	})
	_, actuator, _ := connectTo(t, s, dir, "actuator", ConnectOptions{Role: "actuator"})
	_, watcher, _ := connectTo(t, s, dir, "watcher", ConnectOptions{Role: "watcher"})
	const known = "webhook-" + testCluster
	webhook := consume(t, actuator, ConsumeOptions{Durable: known})
	defer webhook.stop()
	first := mustPublish(t, watcher, version("db", "1"), 0)
	webhook.next().Done(t.Context(), nil)
	name := actuator.secrets.consumerName(known)
	configOf := func() jetstream.ConsumerConfig {
		consumer, err := answer(t, func() (jetstream.Consumer, error) { return actuator.changes.Consumer(t.Context(), name) })
		testkit.Must(t, err)
		return consumer.CachedInfo().Config
	}
	before := configOf()
	for _, user := range []struct{ name, role, filter string }{
		{"watcher", "watcher", events.KindFilter(testCluster, events.KindConfigMap)},
		{"reader", "actuator", events.KindFilter(testCluster, events.KindConfigMap)},
		{"audit", "watcher", events.KindFilter(testCluster, events.KindOpenBao)},
		{"projector", "projector", events.KindFilter(testCluster, events.KindSecret)},
	} {
		t.Run(user.name, func(t *testing.T) {
			nc, _, log := connectTo(t, s, dir, user.name, ConnectOptions{Role: user.role})
			request, err := json.Marshal(map[string]any{"stream_name": events.StreamChanges, "config": jetstream.ConsumerConfig{
				Durable: known, FilterSubject: user.filter, AckPolicy: jetstream.AckExplicitPolicy,
			}})
			testkit.Must(t, err)
			created, err := nc.Request("$JS.API.CONSUMER.CREATE.CHANGES."+known+"."+user.filter, request, testkit.Patience)
			testkit.Must(t, err)
			info, err := nc.Request("$JS.API.STREAM.INFO.CHANGES", nil, testkit.Patience)
			testkit.Must(t, err)
			if strings.Contains(string(created.Data)+string(info.Data), name) {
				t.Errorf("it is answered the name of the webhook's consumer: %s %s", created.Data, info.Data)
			}
			for _, subject := range []string{"$JS.API.CONSUMER.NAMES.CHANGES", "$JS.API.CONSUMER.LIST.CHANGES"} {
				testkit.Must(t, nc.Publish(subject, nil))
				testkit.Eventually(t, "a request on "+subject+" is refused", func() bool { return strings.Contains(log.String(), subject) })
			}
		})
	}
	testkit.WantEqual(t, "the webhook's consumer", before, configOf())
	second := mustPublish(t, watcher, version("db", "2"), first)
	if d := webhook.next(); d.Seq != second || d.Deliveries != 1 {
		t.Errorf("the webhook gets %d, delivered %d times, want %d once", d.Seq, d.Deliveries, second)
	} else {
		d.Done(t.Context(), nil)
	}
}

// A position is kept over a restart. A new key makes a new consumer, which begins as a first one does.
func TestTheNameOfAConsumerFollowsFromTheKey(t *testing.T) {
	s, dir := componentServer(t, map[string]string{"nats.conf": "programs/nats.conf"})
	name := func(user string) string {
		t.Helper()
		_, b, _ := connectTo(t, s, dir, user, ConnectOptions{Role: user})
		return b.secrets.consumerName("webhook")
	}
	first := name("actuator")
	if !strings.HasPrefix(first, "webhook-") || len(first) != len("webhook-")+32 || name("actuator") != first {
		t.Errorf("got %s, want the same name with a further part each time", first)
	}
	if name("watcher") == first {
		t.Errorf("got %s for two keys", first)
	}
	if plain := sharedServer(t).bus().secrets.consumerName("webhook"); plain != "webhook" {
		t.Errorf("without a key: got %s", plain)
	}
}

// What a rollout has begun with is on CHANGES. From that everybody knew the id of the message by which the actuator says how it ended, and could use
// it first. The message counted as a duplicate: no history, no notification.
func TestNoUserHidesAnOutcomeByItsMessageID(t *testing.T) {
	s, dir := componentServer(t, map[string]string{"nats.conf": "programs/nats.conf"})
	_, actuator, _ := connectTo(t, s, dir, "actuator", ConnectOptions{Role: "actuator"})
	_, watcher, _ := connectTo(t, s, dir, "watcher", ConnectOptions{Role: "watcher"})
	failed := outcome()
	failed.Verb, failed.Reason = events.VerbFailed, "rollout-timeout"
	for _, root := range []string{events.HistoryRoot, events.ChangesRoot} {
		published(t, func() error {
			_, err := watcher.js.Publish(t.Context(), root+testCluster+".secret.shop.x", []byte("x"), jetstream.WithMsgID(testCluster+"/"+failed.ID()))
			return err
		})
	}
	mustTell(t, actuator, failed)
	mustTell(t, actuator, failed) // A repetition is still recognized.
	stream, err := actuator.js.Stream(t.Context(), events.StreamHistory)
	testkit.Must(t, err)
	if got := stream.CachedInfo().State.Msgs; got != 2 {
		t.Errorf("HISTORY has %d messages, want that of the watcher and one outcome", got)
	}
	if last, err := lastOn(t, actuator, events.OutcomeSubject(testCluster, failed.Workload)); err != nil || last.ID() != failed.ID() {
		t.Errorf("the state of the workload: got %v, %v, want the failure", last.Event(), err)
	}
}

// The id of a projection follows from the change, which everybody sees, and from the UID of the resource.
func TestNoUserHidesAProjectionByItsMessageID(t *testing.T) {
	s, dir := componentServer(t, map[string]string{"nats.conf": "components/projector/nats.conf"})
	connectTo(t, s, dir, "actuator", ConnectOptions{Role: "actuator"})
	_, watcher, _ := connectTo(t, s, dir, "watcher", ConnectOptions{Role: "watcher"})
	_, projector, _ := connectTo(t, s, dir, "projector", ConnectOptions{Role: "projector"})
	published(t, func() error {
		id := jetstream.WithMsgID(testCluster + "/" + projection().ID())
		_, err := watcher.js.Publish(t.Context(), events.HistoryRoot+testCluster+".secret.shop.x", []byte("x"), id)
		return err
	})
	for range 2 { // A repetition is still recognized.
		published(t, func() error { return projector.PublishProjection(t.Context(), projection()) })
	}
	stream, err := watcher.js.Stream(t.Context(), events.StreamHistory)
	testkit.Must(t, err)
	if got := stream.CachedInfo().State.Msgs; got != 2 {
		t.Errorf("HISTORY has %d messages, want that of the watcher and one projection", got)
	}
}

// An answer on the subject of a source would displace its change, because CHANGES keeps one message of each subject; on the subject of an ack it would
// take an event from the actuator; and on a subject of the JetStream API it would be a request that nobody is asked for.
func TestNoUserHasAnswersPutWhereItMayNotPublish(t *testing.T) {
	s, dir := componentServer(t, map[string]string{
		"nats.conf": "components/projector/with-audit/nats.conf", "audit.conf": "components/openbao-audit/nats.conf",
		"projector.conf": "components/projector/nats.conf",
	})
	open := func(user, role string) (*nats.Conn, jetstream.JetStream) {
		t.Helper()
		nc, err := Connect(t.Context(), ConnectOptions{
			URL: s.ClientURL(), Cluster: testCluster, Role: role,
			CAFile: filepath.Join(dir, "ca.crt"), CredsFile: filepath.Join(dir, user+".nk"),
		})
		testkit.Must(t, err)
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		testkit.Must(t, err)
		return nc, js
	}
	nc, owner := open("actuator", "actuator")
	testkit.Must(t, declareWith(t.Context(), nc))
	_, watcher := open("watcher", "watcher")
	m := testkit.NewMisdirection(t, testCluster, owner, watcher)
	for _, user := range []struct{ name, role, consumer, filter string }{
		{"reader", "actuator", "reads", ""},
		{"audit", "watcher", "audits", events.KindFilter(testCluster, events.KindOpenBao)},
		{"projector", "projector", "projector-" + testCluster, events.KindFilter(testCluster, events.KindSecret)},
		{"watcher", "watcher", "watches", ""},
	} {
		t.Run(user.name, func(t *testing.T) {
			nc, _ := open(user.name, user.role)
			m.Try(t, user.name, nc, user.consumer, user.filter)
		})
	}
}
