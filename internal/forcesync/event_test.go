package forcesync

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

// event is an event that syncs hold. It is settled when it was taken and none holds it any more.
type event struct {
	taken bool
	holds int
	err   error
}

func (e *event) Hold() { e.holds++ }

func (e *event) Release(err error) {
	e.holds--
	e.err = cmp.Or(e.err, err)
}

// deliver hands an event to the actuator without waiting until it takes it.
func (b *bed) deliver(ctx context.Context, change events.Change) *event {
	e := &event{}
	go func() {
		select {
		case <-ctx.Done():
		case b.do <- func() { b.y.Take(b.Context(), change, trace.SpanFromContext(b.Context()), e); e.taken = true }:
		}
	}()
	return e
}

// fp returns a fingerprint that differs with the letter.
func fp(letter string) string { return "k0a1b2c3d:" + strings.Repeat("0", 31) + letter }

// rotation returns the event of a new version at a path in the mount secret.
func rotation(path string, version int64, mutate func(*events.Change)) events.Change {
	revision := strconv.FormatInt(version, 10)
	change := events.Change{
		Cluster: "demo", Source: events.StorePath{Store: "main", Namespace: events.RootNamespace, Mount: "secret", Path: path}.Source(),
		Verb: events.VerbRotated, UID: "main", ResourceVersion: strconv.FormatInt(1000+version, 10), ChangedAt: "1", Fingerprint: fp("a"),
		Time: time.Now(), Trace: events.TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		Store: &events.StoreState{Servers: []string{"https://bao"}, Engine: events.EngineKV, Version: version, Revision: revision, Operation: "update"},
	}
	if mutate != nil {
		mutate(&change)
	}
	return change
}

// rotate writes a version and delivers its event.
func (b *bed) rotate(path string, version int64, mutate func(*events.Change)) *event {
	b.with(func() { b.content = path + strconv.FormatInt(version, 10) })
	return b.deliver(b.Context(), rotation(path, version, mutate))
}
