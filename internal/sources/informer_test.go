package sources

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAListReportsWhatTheWatchBeforeItHasMissed(t *testing.T) {
	pendingTest(t, func(t *testing.T, p *pendingSources) {
		secret := func(name, version, value string) *kinds.Object {
			return reducedOf(t, secretOf(testSource.Namespace, name, "u-"+name, version, value))
		}
		handler := &objectHandler{contents: kinds.NewPodContents(), absence: &absence{known: newLedger()}, pending: p}
		i := newInformer(&informerOptions{handler: handler}, kindOf(t, events.KindSecret), "")
		i.Replace(t.Context(), []*kinds.Object{secret("same", "1", "one"), secret("changed", "2", "one"), secret("gone", "3", "one")}, "3")
		i.Put(t.Context(), secret("created", "4", "one"))
		for range 4 {
			source, entry, _ := p.take()
			if want := source.Name == "created"; entry.created != want || entry.gone {
				t.Errorf("%s: %+v, want created %t", source, entry, want)
			}
			p.done(source)
		}
		if got := *i.version.Load(); got != "3" {
			t.Errorf("it has reached %s, want 3 until the reflector reports more", got)
		}

		i.Replace(t.Context(), []*kinds.Object{secret("same", "1", "one"), secret("changed", "8", "two"), secret("new", "7", "one")}, "9")
		got := make(map[string]queueEntry)
		for range queuedIn(p) {
			source, entry, _ := p.take()
			got[source.Name] = queueEntry{created: entry.created, gone: entry.gone, changes: entry.changes}
			p.done(source)
		}
		want := map[string]queueEntry{"changed": {changes: 1}, "new": {created: true, changes: 1}, "gone": {gone: true}, "created": {gone: true}}
		testkit.WantEqual(t, "what is queued", want, got, everyField)
		if seen := i.store.Put(secret("gone", "10", "one")); seen != nil {
			t.Errorf("the store still has %s", seen.Source)
		}
		if got := *i.version.Load(); got != "9" {
			t.Errorf("it has reached %s, want the list's 9", got)
		}
	})
}
