package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// answered is how long a request waits for its answer before it is repeated: what a server takes just before it is killed is not answered.
const answered = 5 * time.Second

// publish publishes a message without an event as the watcher of a cluster, on a subject below that of the cluster.
func (h *hub) publish(cluster, subject, id string) {
	h.Helper()
	h.publishData(cluster, subject, id, nil)
}

// publishData is publish with content. By its ID, what is published again is not stored twice.
func (h *hub) publishData(cluster, subject, id string, data []byte) {
	h.Helper()
	msg := &nats.Msg{Subject: "keyturn.v1." + cluster + "." + subject, Data: data}
	h.publishMsg(h.jetstream(cluster+"-watcher"), msg, jetstream.WithMsgID(id))
}

// publishMsg publishes until it is acked: a server of a hub that has not heard yet of a new stream answers that nobody takes the message.
func (h *hub) publishMsg(js jetstream.JetStream, msg *nats.Msg, options ...jetstream.PublishOpt) {
	h.Helper()
	var err error
	testkit.Await(h.T, msg.Subject+" is published", func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, answered)
		defer cancel()
		_, err = js.PublishMsg(ctx, msg, options...)
		return err == nil
	}, func() string { return fmt.Sprint(err) })
}

// message is a message of a stream.
type message struct{ subject, id string }

// messages returns a stream's messages on the subjects, in order.
func messages(t *testing.T, js jetstream.JetStream, stream string, subjects ...string) []message {
	t.Helper()
	var consumer jetstream.Consumer
	testkit.Await(t, "a consumer of "+stream+" is there", func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, answered)
		defer cancel()
		var err error
		// Who waits asks again and again, and an account may have so many consumers only.
		config := jetstream.OrderedConsumerConfig{FilterSubjects: subjects, HeadersOnly: true, InactiveThreshold: 5 * time.Second}
		consumer, err = js.OrderedConsumer(ctx, stream, config)
		return err == nil
	})
	left := consumer.CachedInfo().NumPending
	if left == 0 {
		return nil
	}
	batch, err := consumer.Messages()
	testkit.Must(t, err)
	defer batch.Stop()
	var got []message
	for ; left > 0; left-- {
		msg, err := batch.Next(jetstream.NextMaxWait(testkit.Patience))
		testkit.Must(t, err)
		got = append(got, message{subject: msg.Subject(), id: msg.Headers().Get(nats.MsgIdHdr)})
	}
	return got
}

// caughtUp waits until FLEET has the last event on each subject of the clusters' CHANGES, and checks that it has none twice,
// and none of another cluster's.
func (h *hub) caughtUp(clusters ...string) {
	h.Helper()
	reader := h.jetstream("fleet-reader")
	for _, cluster := range clusters {
		own := h.jetstream(cluster + "-actuator")
		filter := "keyturn.v1." + cluster + ".>"
		var missing []message
		testkit.Await(h.T, "FLEET has all of "+cluster, func(context.Context) bool {
			last := map[string]string{}
			for _, msg := range messages(h.T, reader, "FLEET", filter) {
				last[msg.subject] = msg.id
			}
			missing = slices.DeleteFunc(messages(h.T, own, events.StreamChanges, filter), func(msg message) bool {
				id, ok := last[msg.subject]
				return ok && id == msg.id
			})
			return len(missing) == 0
		})
		seen := map[string]bool{}
		for _, msg := range messages(h.T, reader, "FLEET", filter) {
			if msg.id == "" {
				continue // no program has published it
			}
			if seen[msg.id] {
				h.Errorf("FLEET has %s on %s twice", msg.id, msg.subject)
			}
			seen[msg.id] = true
			if !strings.HasPrefix(msg.id, cluster+"/") {
				h.Errorf("FLEET has %s on %s, which is not of cluster %s", msg.id, msg.subject, cluster)
			}
		}
	}
}
