package openbao

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	pollReferenced = withToken + "{interval: 1m, referenced: true}}]"
	forbidden      = `{"errors":["permission denied"]}`
)

// referenceTo returns a reference to a path of the fake store.
func referenceTo(namespace, mount, path string) Reference {
	return Reference{Server: "http://bao", Path: events.StorePath{Namespace: namespace, Mount: mount, Path: path}}
}

// failures returns the failures that the first store's status remembers, by subject.
func (r *rig) failures() map[string][]error {
	s := r.feed.pipelines[0].status
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.failures)
}

func TestReferencesToInventedMountsTakeBoundedRoom(t *testing.T) {
	polls := 0
	referenced := func(context.Context) ([]Reference, error) {
		references := make([]Reference, 100)
		for i := range references {
			references[i] = referenceTo(events.RootNamespace, fmt.Sprintf("invented-%d-%d", polls, i), "x")
		}
		polls++
		return references, nil
	}
	inBubble(t, pollReferenced, newFakeStore(kv2), func(o *Options) { o.Referenced = referenced }, func(t *testing.T, r *rig) {
		after(30 * time.Minute)
		logged := func() int { return strings.Count(r.log.String(), "store cannot be read") }
		if remembered := len(r.failures()); logged() != maxMountFailures || remembered != maxMountFailures {
			t.Errorf("%d mounts are logged and %d remembered, want %d", logged(), remembered, maxMountFailures)
		}
		after(time.Hour)
		if got := logged(); got <= maxMountFailures || got > 2*maxMountFailures {
			t.Errorf("%d mounts are logged an hour later, want %d once more at most", got, maxMountFailures)
		}
		if r.count(t, "keyturn.openbao.polls", "failure") != 0 {
			t.Errorf("polls have failed:\n%.2000s", r.log)
		}
	})
}

func TestWhatIsReferencedInVainIsToldOnce(t *testing.T) {
	tests := []struct {
		name       string
		references []Reference
		answers    map[string]int
		want       []string // for each line
	}{
		{
			name: "for each kind of failure in a mount",
			references: []Reference{
				referenceTo("root", "secret", "a"), referenceTo("root", "secret", "b"), referenceTo("root", "secret", "c"), referenceTo("root", "secret", "d"),
			},
			answers: map[string]int{"secret/metadata/a": 403, "secret/metadata/b": 400, "secret/metadata/c": 403},
			want:    []string{"part of secret reason=forbidden", "part of secret reason=status-400"},
		},
		{
			name:       "for a mount that is not there, and for one in a namespace of the same path",
			references: []Reference{referenceTo("root", "team/other", "a"), referenceTo("team", "other", "a")},
			want:       []string{"part of team%2Fother reason=no-mount", "part of team/other reason=no-mount"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			for _, namespace := range []string{"team", "idle"} {
				store.do(namespace+"@sys/internal/ui/mounts", store.answers["sys/internal/ui/mounts"])
			}
			for request, status := range test.answers {
				store.say(request, status, forbidden)
			}
			referenced := func(context.Context) ([]Reference, error) { return test.references, nil }
			inBubble(t, pollReferenced, store, func(o *Options) { o.Referenced = referenced }, func(t *testing.T, r *rig) {
				after(10 * time.Minute)
				log := strings.ReplaceAll(r.log.String(), `"`, "")
				for _, want := range test.want {
					if strings.Count(log, want) != 1 {
						t.Errorf("want one line for %s", want)
					}
				}
				if got := strings.Count(log, "\n"); got != len(test.want) {
					t.Errorf("%d lines, want %d:\n%s", got, len(test.want), log)
				}
				if failed := r.count(t, "keyturn.openbao.polls", "failure"); failed != 0 {
					t.Errorf("%d polls failed", failed)
				}
			})
		})
	}
}
