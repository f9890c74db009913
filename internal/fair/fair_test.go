package fair

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pathOf returns the groups of an item, which are all parts of its name except the last.
func pathOf(item string) []string {
	parts := strings.Split(item, "/")
	return parts[:len(parts)-1]
}

func anyone(string) bool { return true }

func TestGroupsTakeTurns(t *testing.T) {
	tests := []struct {
		name string
		// push is queued first, and again after three items were taken.
		push, again []string
		// not is a namespace that may not have a turn.
		not  string
		want []string
	}{
		{
			name: "namespaces", push: []string{"aaa/1", "aaa/2", "aaa/3", "aaa/4", "shop/1", "shop/2", "crm/1"}, again: []string{"crm/2"},
			want: []string{"aaa/1", "shop/1", "crm/1", "aaa/2", "shop/2", "crm/2", "aaa/3", "aaa/4"},
		},
		{
			name: "groups of namespaces", again: []string{"b/shop/2"},
			push: []string{"a/shop/1", "a/shop/2", "a/shop/3", "a/shop/4", "b/shop/1", "c/shop/1", "c/shop/2"},
			want: []string{"a/shop/1", "b/shop/1", "c/shop/1", "a/shop/2", "c/shop/2", "b/shop/2", "a/shop/3", "a/shop/4"},
		},
		{
			name: "the namespaces of a group", push: []string{"a/aaa/1", "a/aaa/2", "a/aaa/3", "a/shop/1", "a/crm/1"}, again: []string{"a/crm/2"},
			want: []string{"a/aaa/1", "a/shop/1", "a/crm/1", "a/aaa/2", "a/crm/2", "a/aaa/3"},
		},
		{
			name: "but not a namespace that may not", not: "aaa",
			push: []string{"a/aaa/1", "a/shop/1", "a/aaa/2", "a/shop/2", "b/aaa/1", "c/aaa/1", "c/crm/1"},
			want: []string{"a/shop/1", "c/crm/1", "a/shop/2"},
		},
		{name: "and an item that is queued keeps its place", push: []string{"aaa/1", "aaa/2", "aaa/1"}, want: []string{"aaa/1", "aaa/2"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q := NewTurns(pathOf)
			push := func(items []string) {
				for _, item := range items {
					q.Push(item)
				}
			}
			push(test.push)
			may := func(namespace string) bool { return namespace != test.not }
			var got []string
			for item := q.Pop(may); item != ""; item = q.Pop(may) {
				if got = append(got, item); len(got) == 3 {
					push(test.again)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for item := q.Pop(anyone); item != ""; item = q.Pop(anyone) {
				if !strings.Contains(item, test.not) {
					t.Errorf("%s was left", item)
				}
			}
			wantEmpty(t, q)
		})
	}
}

func TestWhatIsRemovedHasNoTurn(t *testing.T) {
	q := NewTurns(pathOf)
	all := []string{"a/aaa/1", "a/aaa/2", "a/aaa/3", "a/shop/1", "b/shop/1"}
	for _, item := range all {
		q.Push(item)
	}
	for _, item := range []string{"a/aaa/2", "a/shop/1", "b/shop/1", "b/shop/1", "c/never/1"} {
		q.Remove(item)
	}
	for _, item := range all {
		if left := item == "a/aaa/1" || item == "a/aaa/3"; q.Has(item) != left {
			t.Errorf("%s is queued: %t, want %t", item, !left, left)
		}
	}
	for _, want := range []string{"a/aaa/1", "a/aaa/3", ""} {
		if got := q.Pop(anyone); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	wantEmpty(t, q)
}

func wantEmpty(t *testing.T, q *Turns[string]) {
	t.Helper()
	if len(q.queued)+len(q.root.below)+len(q.root.order) != 0 {
		t.Errorf("something is left: %+v", q)
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
		{name: "more may be taken than there are", limit: 1, taken: []string{"shop", "crm"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := NewSlots(test.limit, test.alone)
			for _, namespace := range test.taken {
				s.Take(namespace)
			}
			var got []string
			for _, namespace := range []string{"shop", "crm", "erp"} {
				if s.MayTake(namespace) {
					got = append(got, namespace)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for _, namespace := range test.taken {
				s.Return(namespace)
			}
			if s.Free() != test.limit || len(s.taken) != 0 {
				t.Errorf("%d are free after all were returned, and these are taken: %v", s.Free(), s.taken)
			}
		})
	}
}
