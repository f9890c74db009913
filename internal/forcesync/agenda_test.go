package forcesync

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheAgendaIsInTheOrderOfItsTimes(t *testing.T) {
	start := time.Unix(1000, 0)
	after := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var a agenda
	syncs := make(map[string]*pendingSync)
	for _, one := range []struct {
		name string
		at   int
	}{{"c", 3}, {"a", 1}, {"moved", 9}, {"b", 1}, {"removed", 2}, {"d", 7}} {
		syncs[one.name] = &pendingSync{key: key{secret: types.NamespacedName{Namespace: "shop", Name: one.name}}}
		a.schedule(syncs[one.name], after(one.at))
	}
	a.schedule(syncs["moved"], after(5))
	a.remove(syncs["removed"])
	a.remove(syncs["removed"])

	due := func(now int) []string {
		var names []string
		for s := a.pop(after(now)); s != nil; s = a.pop(after(now)) {
			names = append(names, s.key.secret.Name)
		}
		return names
	}
	want := func(now int, names ...string) {
		t.Helper()
		if diff := cmp.Diff(names, due(now)); diff != "" {
			t.Errorf("due after %d s (-want +got):\n%s", now, diff)
		}
	}
	want(0)
	if next, ok := a.next(); !ok || !next.Equal(after(1)) {
		t.Errorf("next is %s (%t), want %s", next, ok, after(1))
	}
	want(1, "a", "b")
	want(6, "c", "moved")
	a.schedule(syncs["a"], after(6))
	want(8, "a", "d")
	if next, ok := a.next(); ok || len(a) != 0 {
		t.Errorf("something is left at %s: %v", next, a)
	}
}
