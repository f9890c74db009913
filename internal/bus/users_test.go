package bus

import (
	"context"
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
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	for _, user := range []string{"watcher", "actuator", "reader", "audit", "projector"} {
		t.Setenv("NATS_"+strings.ToUpper(user)+"_KEY", testkit.NewNATSUser(t, dir, user))
	}
	testkit.NewCA(t).Issue(t, dir, time.Now().Add(time.Hour))
	t.Setenv("NATS_TLS_CERT", filepath.Join(dir, "tls.crt"))
	t.Setenv("NATS_TLS_KEY", filepath.Join(dir, "tls.key"))
	t.Setenv("NATS_PROJECTOR_CONSUMERS", testkit.ProjectorConsumers(t, "../../deploy", testCluster))
	for _, name := range []string{"NATS_PROJECTOR_SUBJECTS", "NATS_PROJECTOR_ACKS"} {
		t.Setenv(name, testkit.ProjectorVariable(t, "../../deploy", name, testCluster))
	}
	s, err := embedded.Start(embedded.Options{Listen: "127.0.0.1:-1", StoreDir: testkit.StoreDir(t), ConfigFile: filepath.Join(dir, "nats.conf")}, nil)
	must(t, err)
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
	must(t, err)
	t.Cleanup(nc.Close)
	if user == "actuator" {
		must(t, declareWith(t.Context(), nc))
	}
	b, err := Open(t.Context(), nc, testCluster, nil)
	must(t, err)
	return nc, b, log
}

// Whoever takes over what receives audits can claim that secrets in stores were written. It sees and claims nothing else.
func TestTheReceiverOfAuditsPublishesChangesInStoresAndNothingElse(t *testing.T) {
	s, dir := componentServer(t, map[string]string{"nats.conf": "components/openbao-audit/nats.conf"})
	connectTo(t, s, dir, "actuator", ConnectOptions{Role: "actuator"})
	_, watcher, _ := connectTo(t, s, dir, "watcher", ConnectOptions{Role: "watcher"})
	secret := version("db", "1")
	mustPublish(t, watcher, secret, 0)

	nc, audit, log := connectTo(t, s, dir, "audit", ConnectOptions{Role: "watcher", Inbox: "_INBOX_audit"})
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
	for _, subject := range []string{
		"$JS.API.CONSUMER.CREATE.CHANGES.projector-prod-eu.keyturn.v1.prod-eu.openbao.>", "$JS.API.CONSUMER.MSG.NEXT.CHANGES.projector-prod-eu",
	} {
		must(t, nc.Publish(subject, nil))
		testkit.Eventually(t, "a request on "+subject+" is refused", func() bool { return strings.Contains(log.String(), subject) })
	}
	for _, subject := range []string{"_INBOX_watcher.>", "_INBOX.>", "keyturn.>"} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
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

			nc, projector, log := open("projector")
			options := ConsumeOptions{
				Durable: "projector-" + testCluster, FilterSubjects: []string{events.KindFilter(testCluster, events.KindSecret)}, WithoutDeadLetters: true,
			}
			c := consume(t, projector, options)
			defer c.stop()
			c.next().Done(t.Context(), nil)
			published(t, func() error { return projector.PublishProjection(t.Context(), projection()) })
			// What is no event is forgotten, and left to the actuator's dead letters.
			broken, err := ToMsg(mustEvent(t, version("web", "2").Event), events.Subject(testCluster, version("other", "2").Source))
			must(t, err)
			if _, err := watcher.js.PublishMsg(t.Context(), broken); err != nil {
				t.Fatal(err)
			}
			testkit.Await(t, "everything is acked", func(ctx context.Context) bool {
				return isDrained(ctx, actuator, options.Durable)
			})
			if strings.Contains(log.String(), "ermissions") {
				t.Errorf("it was refused what it needs: %s", log)
			}

			ack := held.msg.Reply()
			for _, subject := range []string{
				"keyturn.v1." + testCluster + ".secret.shop.db", "keyturn.v1." + testCluster + ".rollout.shop.deployment-web",
				"keyturn.history.v1." + testCluster + ".rollout.shop.deployment-web", "keyturn.deadletter.v1." + testCluster + ".secret.shop.db",
				"$JS.API.DIRECT.GET.CHANGES.keyturn.v1." + testCluster + ".configmap.shop.app",
				"$JS.API.CONSUMER.CREATE.CHANGES.projector-" + testCluster + ".keyturn.v1." + testCluster + ".>",
				"$JS.API.CONSUMER.CREATE.CHANGES.projector-" + testCluster, "$JS.API.CONSUMER.CREATE.CHANGES",
				"$JS.API.CONSUMER.CREATE.HISTORY.projector-" + testCluster, "$JS.API.CONSUMER.DURABLE.CREATE.CHANGES.projector-" + testCluster,
				"$JS.API.CONSUMER.MSG.NEXT.CHANGES.webhook-" + testCluster, "$JS.API.CONSUMER.DELETE.CHANGES.webhook-" + testCluster,
				"$JS.API.STREAM.PURGE.CHANGES", "$JS.API.STREAM.UPDATE.HISTORY", ack,
			} {
				must(t, nc.Publish(subject, []byte("+ACK")))
				testkit.Eventually(t, "a message on "+subject+" is refused", func() bool { return strings.Contains(log.String(), subject) })
			}
			for _, subject := range []string{"_INBOX_watcher.>", "_INBOX.>", "keyturn.>"} {
				if _, err := nc.SubscribeSync(subject); err != nil {
					t.Fatal(err)
				}
				testkit.Eventually(t, "a subscription of "+subject+" is refused", func() bool {
					return strings.Contains(strings.ToLower(log.String()), `subscription to \"`+strings.ToLower(subject))
				})
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := projector.PublishChange(ctx, version("db", "3"), 3); err == nil {
				t.Error("it publishes a change of a Secret")
			}
			if _, inFlight, err := left(t.Context(), actuator, "webhook-"+testCluster); err != nil || inFlight == 0 {
				t.Errorf("in flight to the webhook: got %d, %v, want what it has not acked", inFlight, err)
			}
			held.Done(t.Context(), nil)
		})
	}
}

// An answer on the subject of a source would displace its change, because CHANGES keeps one message of each subject; on the subject of an ack it would
// take an event from the actuator; and on a subject of the JetStream API it would be a request that nobody is asked for.
func TestNoUserHasAnswersPutWhereItMayNotPublish(t *testing.T) {
	s, dir := componentServer(t, map[string]string{
		"nats.conf": "components/projector/with-audit/nats.conf", "audit.conf": "components/openbao-audit/nats.conf",
		"projector.conf": "components/projector/nats.conf",
	})
	open := func(user, inbox string) (*nats.Conn, jetstream.JetStream) {
		t.Helper()
		nc, err := Connect(t.Context(), ConnectOptions{
			URL: s.ClientURL(), Cluster: testCluster, Role: user, Inbox: inbox,
			CAFile: filepath.Join(dir, "ca.crt"), CredsFile: filepath.Join(dir, user+".nk"),
		})
		must(t, err)
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		must(t, err)
		return nc, js
	}
	nc, owner := open("actuator", "")
	must(t, declareWith(t.Context(), nc))
	_, watcher := open("watcher", "")
	m := testkit.NewMisdirection(t, testCluster, owner, watcher)
	for _, user := range []struct{ name, inbox, consumer, filter string }{
		{"reader", "_INBOX_actuator." + testCluster, "reads", ""},
		{"audit", "_INBOX_audit", "audits", events.KindFilter(testCluster, events.KindOpenBao)},
		{"projector", "", "projector-" + testCluster, events.KindFilter(testCluster, events.KindSecret)},
		{"watcher", "", "watches", ""},
	} {
		t.Run(user.name, func(t *testing.T) {
			nc, _ := open(user.name, user.inbox)
			m.Try(t, user.name, nc, user.consumer, user.filter)
		})
	}
}
