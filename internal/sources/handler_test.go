package sources

import (
	"strconv"
	"testing"

	"github.com/keyturn/keyturn/internal/sources/kinds"
)

func TestTheHandlerCountsWhatTheContentWas(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []string // of one object, one after the other
		want   int
	}{
		{"one change", []string{"one", "two"}, 1},
		{"two changes", []string{"one", "two", "three"}, 2},
		{"a change that is undone", []string{"one", "two", "one"}, 2},
		{"writes that leave the content as it is", []string{"one", "one", "one"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pendingTest(t, func(t *testing.T, p *pendingSources) {
				h := &objectHandler{contents: kinds.NewPodContents(), pending: p}
				before := objectOf(t, "u", 1, tt.values[0])
				for i, value := range tt.values[1:] {
					now := reducedOf(t, secretOf(testSource.Namespace, testSource.Name, "u", strconv.Itoa(i+2), value))
					h.updated(before, now)
					before = now
				}
				entry := mustTake(t, p, testSource)
				if entry.changes != tt.want {
					t.Errorf("the content changed %d times, want %d", entry.changes, tt.want)
				}
				p.add(testSource)
				p.retry(testSource, entry)
				if again := mustTake(t, p, testSource); again.changes != tt.want {
					t.Errorf("after a retry it changed %d times, want %d", again.changes, tt.want)
				}
				p.done(testSource)
			})
		})
	}
}
