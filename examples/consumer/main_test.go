package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func TestMain(m *testing.M) { natstest.Main(m) }

// lines is what a consumer has written so far.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	// wrote is closed when there are as many lines as are waited for.
	wrote chan struct{}
	want  int
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.text.Write(p)
	if strings.Count(l.text.String(), "\n") == l.want {
		close(l.wrote)
	}
	return n, err
}

func TestTheExampleReadsWhatThePublisherWrites(t *testing.T) {
	url := natstest.Account(t)
	connection, err := nats.Connect(url, nats.Timeout(testkit.Patience))
	testkit.Must(t, err)
	defer connection.Close()
	js, err := jetstream.New(connection)
	testkit.Must(t, err)
	b, err := bus.Open(t.Context(), connection, "prod-eu", nil)
	testkit.Must(t, err)
	at := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	outcome := events.Outcome{
		Cluster: "prod-eu", Verb: events.VerbCompleted, Time: at, ResourceVersion: "8", Cause: "uid/7", Revision: "r1", Reason: "rolled-out",
		Message:  "50 % of Zürich’s pods waited.",
		Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: "web", UID: "aa0c2a4e"},
	}
	failed := outcome
	failed.Verb, failed.Reason = events.VerbFailed, "deadline-exceeded"

	// The second time it gets what came meanwhile, and nothing twice.
	for _, step := range []struct {
		publish events.Outcome
		want    string
	}{
		{outcome, "2026-03-14T15:09:26Z prod-eu dev.keyturn.rollout.completed.v1 /apis/apps/v1/namespaces/shop/deployments/web aa0c2a4e/r1/completed\n"},
		{failed, "2026-03-14T15:09:26Z prod-eu dev.keyturn.rollout.failed.v1 /apis/apps/v1/namespaces/shop/deployments/web aa0c2a4e/r1/failed\n"},
	} {
		// What is no CloudEvent keeps nobody.
		natstest.Publish(t, func() error {
			_, err := js.Publish(t.Context(), "keyturn.history.v1.prod-eu.rollout.shop.rubbish", []byte("rubbish"))
			return err
		})
		natstest.Publish(t, func() error { return errors.Join(b.PublishOutcomes(t.Context(), step.publish)...) })
		out := &lines{wrote: make(chan struct{}), want: 1}
		ctx, stop := context.WithTimeout(t.Context(), testkit.Patience)
		ended := make(chan error, 1)
		go func() {
			ended <- run(ctx, url, events.StreamHistory, "keyturn.history.v1.*.rollout.>", "example", out, nats.Timeout(testkit.Patience))
		}()
		select {
		case <-out.wrote:
		case <-ctx.Done():
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		testkit.WantEqual(t, "lines", step.want, out.text.String())
		// The server learns of the closed connection later, and until then it delivers to it what comes next, which is redelivered after
		// AckWait only.
		waitForNobody(t, js)
	}
}

// waitForNobody waits until no request of the consumer is left at the server.
func waitForNobody(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	testkit.Await(t, "no request of the consumer is left", func(ctx context.Context) bool {
		consumer, err := js.Consumer(ctx, events.StreamHistory, "example")
		return err == nil && consumer.CachedInfo().NumWaiting == 0
	})
}
