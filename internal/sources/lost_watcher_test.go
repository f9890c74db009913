package sources

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// purge drops every event on StreamChanges, as an operator may do.
func (b *bench) purge() {
	b.Helper()
	natstest.Publish(b.T, func() error {
		stream, err := b.js.Stream(b.Context(), events.StreamChanges)
		if err != nil {
			return err
		}
		return stream.Purge(b.Context())
	})
}

// await is like eventually, for what reads a whole stream.
func (b *bench) await(what string, holds func(context.Context) bool) {
	b.Helper()
	testkit.Await(b.T, what, holds, b.log.String)
}

// state returns the last event of each source on the stream, or less if the stream cannot be read.
func (b *bench) state(ctx context.Context) map[string]string {
	state := make(map[string]string)
	filters := []string{events.KindFilter(testCluster, events.KindSecret), events.KindFilter(testCluster, events.KindExternalSecret)}
	err := b.bus.State(ctx, filters, func(stored events.Stored) error {
		change, err := stored.Change()
		if err != nil {
			return err
		}
		state[change.Source.String()] = told(change)
		return nil
	})
	if err != nil {
		b.Log(err)
	}
	return state
}

// wantState waits until the last event of each source on the stream is the wanted one.
func (b *bench) wantState(want map[string]string) {
	b.Helper()
	var got map[string]string
	testkit.Await(b.T, "the stream has the wanted last events", func(ctx context.Context) bool {
		got = b.state(ctx)
		return cmp.Equal(want, got)
	}, b.log.String, func() string { return "last events (-want +got):\n" + cmp.Diff(want, got) })
}

// seqOf returns the sequence of the last event of a source on StreamChanges, which must have one.
func (b *bench) seqOf(source events.Source) uint64 {
	b.Helper()
	var last events.Stored
	b.eventually("the last event of "+source.String()+" can be read", func() (ok bool) {
		last, ok = b.lastOn(events.Subject(testCluster, source))
		return ok
	})
	return last.Seq
}

// watchful returns the options of a watcher that checks the stream often.
func (b *bench) watchful() Options {
	options := b.options()
	options.CheckStream = 20 * time.Millisecond
	return options
}

func TestWatcherPublishesAgainWhatTheStreamHasLost(t *testing.T) {
	b := newBench(t, secretOf("shop", "db", "u1", "1", "one"), secretOf("shop", "other", "u2", "1", "one"))
	defer b.ready(b.watchful())()
	b.update(secretOf("shop", "db", "u1", "2", "two"))
	b.create(secretOf("shop", "goes", "u3", "3", "one"))
	b.await("both are published", func(ctx context.Context) bool {
		state := b.state(ctx)
		return len(state) == 3 && strings.HasPrefix(state["secret/db"], "changed")
	})
	b.delete("shop", "goes")
	want := map[string]string{
		"secret/db": "changed u1/2@2 {a@2 b} [a]", "secret/other": "observed u2/1 {a b} []", "secret/goes": "deleted u3/3@3 {a b} []",
	}
	b.await("the deletion is published", func(ctx context.Context) bool { return b.state(ctx)["secret/goes"] == want["secret/goes"] })
	for range 2 {
		b.purge()
		b.wantState(want)
	}
	b.eventually("that is logged", func() bool {
		return strings.Contains(b.log.String(), `"level":"WARN","msg":"stream CHANGES has lost events; publishing them again"`)
	})
}
