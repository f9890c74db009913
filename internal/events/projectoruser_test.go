package events

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/tests/testkit"
)

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
				Durable: "projector-" + testCluster, FilterSubjects: []string{KindFilter(testCluster, KindSecret)}, WithoutDeadLetters: true,
			}
			c := consume(t, projector, options)
			defer c.stop()
			c.next().Done(t.Context(), nil)
			published(t, func() error { return projector.PublishProjection(t.Context(), projection()) })
			// What is no event is forgotten, and left to the actuator's dead letters.
			broken, err := ToMsg(mustEvent(t, version("web", "2").Event), Subject(testCluster, version("other", "2").Source))
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
