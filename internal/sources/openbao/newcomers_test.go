package openbao

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

func TestNewPathsOfAStoreThatCannotBeAskedAreBounded(t *testing.T) {
	known := func(path events.StorePath) (int64, bool) { return 1, path.Store == "main" && path.Path == "known" }
	inBubble(t, auditOnly, newFakeStore(kv2), func(o *Options) { o.Recorded = known }, func(t *testing.T, r *rig) {
		take := func(path string) {
			r.feed.pipelines[0].intake.take(t.Context(), writeLine("create", "secret/data/"+path, 1))
		}
		for n := range maxNewcomers + 5 {
			take(fmt.Sprint("new/", n))
		}
		take("known")
		after(time.Second)
		if seen := r.seen(); len(seen) != maxNewcomers+1 || seen["secret/known"].State != Live {
			t.Errorf("%d paths were observed, want %d new ones and the known one", len(seen), maxNewcomers)
		}
		if got := r.lines(t, excess); got != 5 {
			t.Errorf("%d lines are in excess, want 5", got)
		}
		if got := strings.Count(r.log.String(), "too many new paths"); got != 1 {
			t.Errorf("logged %d times, want once:\n%s", got, r.log)
		}
		after(time.Minute)
		take("new/later")
		after(time.Second)
		if seen := r.seen(); len(seen) != 1 {
			t.Errorf("observed %v a minute later, want the new path", paths(seen))
		}
	})
}

func TestNewPathsOfKVv1AreBounded(t *testing.T) {
	store := newFakeStore(`{"old/":{"type":"kv","options":{"version":"1"}}}`)
	known := func(events.StorePath) (int64, bool) { return 0, false }
	inBubble(t, askOnly, store, func(o *Options) { o.Recorded = known }, func(t *testing.T, r *rig) {
		follow := &follower{
			origin: origin{store: "main"}, mounts: newMountTable(r.feed.pipelines[0].client), newcomers: r.feed.pipelines[0].newNewcomers(),
			outlet: &outlet{sink: func(o Observation) bool { r.sink <- o; return true }},
		}
		for n := range maxNewcomers + 1 {
			h := newHint(entry{engine: events.EngineKV, namespace: events.RootNamespace, mount: "old", path: fmt.Sprint("old/", n), operation: "create"})
			if _, err := follow.locate(context.WithoutCancel(t.Context()), &h, false); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(r.seen()); got != maxNewcomers {
			t.Errorf("%d paths were observed, want %d", got, maxNewcomers)
		}
	})
}
