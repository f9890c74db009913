package forcesync

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
)

func TestASlotIsTakenAndReturnedOnce(t *testing.T) {
	active := int64(0)
	l := newSlots(&Host{MaxSyncs: 1, Metrics: Metrics{Active: func(_ context.Context, change int64) { active += change }}})
	s := &pendingSync{causes: []cause{{span: trace.SpanFromContext(t.Context())}}}
	if !l.free("") {
		t.Error("no slot is free at first")
	}
	l.acquire(t.Context(), s)
	if l.free("") || active != 1 {
		t.Errorf("the slot is still free, or %d are active", active)
	}
	l.release(t.Context(), s)
	l.release(t.Context(), s)
	if !l.free("") || l.used != 0 || active != 0 {
		t.Errorf("%d slots are used and %d active after it was returned", l.used, active)
	}
}

func TestANamespaceHasFewerSlotsThanAreFree(t *testing.T) {
	tests := []struct {
		name  string
		limit int
		alone bool
		taken []string
		want  []string // the namespaces of shop, crm and erp that may take one
	}{
		{name: "anyone takes the first", limit: 1, want: []string{"shop", "crm", "erp"}},
		{name: "nobody takes one more than there are", limit: 1, taken: []string{"shop"}},
		{name: "one takes half", limit: 5, taken: []string{"shop", "shop"}, want: []string{"shop", "crm", "erp"}},
		{name: "and no more", limit: 5, taken: []string{"shop", "shop", "shop"}, want: []string{"crm", "erp"}},
		{name: "of what others leave", limit: 5, taken: []string{"shop", "shop", "shop", "crm"}, want: []string{"erp"}},
		{name: "unless it is alone", limit: 5, alone: true, taken: []string{"shop", "shop", "shop", "shop"}, want: []string{"shop", "crm", "erp"}},
		{name: "and even then no more than there are", limit: 2, alone: true, taken: []string{"shop", "shop"}},
		{name: "those of one owner may exceed the limit", limit: 1, taken: []string{"shop", "crm"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := newSlots(&Host{MaxSyncs: test.limit, Alone: test.alone, Metrics: Metrics{Active: func(context.Context, int64) {}}})
			var taken []*pendingSync
			for _, namespace := range test.taken {
				s := &pendingSync{causes: []cause{{span: trace.SpanFromContext(t.Context())}}}
				s.key.secret.Namespace = namespace
				l.acquire(t.Context(), s)
				taken = append(taken, s)
			}
			var got []string
			for _, namespace := range []string{"shop", "crm", "erp"} {
				if l.free(namespace) {
					got = append(got, namespace)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for _, s := range taken {
				l.release(t.Context(), s)
			}
			if len(l.taken) != 0 {
				t.Errorf("after all were returned: %v", l.taken)
			}
		})
	}
}

func TestASyncerThatStopsReturnsItsSlots(t *testing.T) {
	inBed(t, func(b *bed) {
		b.took = time.Minute
		b.secret("db", "shop/db", "")
		b.start(b.host())
		b.rotate("shop/db", 2, nil)
		b.pass(time.Second)
		if b.active != 1 {
			t.Fatalf("%d slots are in use, want 1", b.active)
		}
		b.stop()
		if b.active != 0 {
			t.Errorf("%d slots are counted as in use after the Syncer has stopped", b.active)
		}
	})
}
