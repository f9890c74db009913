package openbao

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
)

// A SecretStore without a path has keys that begin with the mount, and one without a namespace may have the namespace in its path.
func TestAReferenceIsReadInTheMountThatTheStoreHas(t *testing.T) {
	const mounts = `{"data":{"secret":{%s}}}`
	kv, roles := `"secret/":{"type":"kv","options":{"version":"2"}}`, `"team/database/":{"type":"database"}`
	for _, test := range []struct {
		name          string
		reference     Reference
		request, want string
	}{
		{name: "a mount with a slash, taken to be its first segment", reference: referenceTo("root", "team", "database/static-creds/app"), request: "team/database/static-roles/app", want: "team/database/static-creds/app"},
		{name: "a namespace before the mount", reference: referenceTo("root", "a/b/secret", "shop/db"), request: "a/b@secret/metadata/shop/db", want: "a/b/secret/shop/db"},
		{name: "a namespace that is taken to be the mount", reference: referenceTo("root", "a", "b/secret/shop/db"), request: "a/b@secret/metadata/shop/db", want: "a/b/secret/shop/db"},
		{name: "a namespace that is not there", reference: referenceTo("root", "nowhere/b/secret", "shop/db")},
		{name: "a mount that is not there", reference: referenceTo("root", "a/b/other", "shop/db")},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore("{" + kv + "," + roles + "}")
			store.say("a@sys/internal/ui/mounts", http.StatusOK, fmt.Sprintf(mounts, ""))
			store.say("a/b@sys/internal/ui/mounts", http.StatusOK, fmt.Sprintf(mounts, kv))
			answer := metadataOf(3, "1999-01-01T00:00:00Z")
			if strings.Contains(test.request, "static-roles") {
				answer = `{"data":{"last_vault_rotation":"1999-01-01T00:00:00Z"}}`
			}
			if test.request != "" {
				store.say(test.request, http.StatusOK, answer)
			}
			inBubble(t, pollReferenced, store, referring(test.reference), func(t *testing.T, r *rig) {
				after(10 * time.Minute)
				var want []string
				if test.want != "" {
					want = []string{test.want}
				}
				wantEqual(t, "observed", want, paths(r.seen()))
				if got := strings.Count(r.log.String(), "reason=no-mount"); (got == 0) != (want != nil) {
					t.Errorf("no-mount is logged %d times:\n%s", got, r.log)
				}
				if times := store.times("nowhere/b@sys/internal/ui/mounts"); times > 0 {
					t.Errorf("a namespace in one that is not there was asked for %d times", times)
				}
			})
		})
	}
}

func TestReferencesAreListedOnceForAllStores(t *testing.T) {
	store := newFakeStore(kv2)
	config := "stores:\n"
	for i := range 5 {
		config += fmt.Sprintf("- {name: s%d, address: 'http://bao-%d', auth: {token: canary-token}, poll: {interval: 1m, referenced: true}}\n", i, i)
	}
	var lists atomic.Int64
	inBubble(t, config, store, func(o *Options) {
		o.Referenced = func(context.Context) ([]Reference, error) {
			lists.Add(1)
			return nil, nil
		}
	}, func(t *testing.T, r *rig) {
		after(10 * time.Minute)
		polls := r.count(t, "keyturn.openbao.polls", "success")
		if polls < 45 {
			t.Fatalf("there were %d polls", polls)
		}
		// At most one for each half of an interval.
		if got := lists.Load(); got < 9 || got > 23 {
			t.Errorf("listed %d times for %d polls of five stores in ten minutes", got, polls)
		}
	})
}

func TestAFeedIsReadyOnceReferencesMayBeListed(t *testing.T) {
	var granted atomic.Bool
	const config = "stores: [{name: main, address: 'http://bao', auth: {token: canary-token}, poll: {interval: 1m, referenced: true, mounts: [nowhere]}}]"
	inBubble(t, config, newFakeStore(kv2), func(o *Options) {
		o.Referenced = func(context.Context) ([]Reference, error) {
			if granted.Load() {
				return nil, nil
			}
			refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "secretstores"}, "", errors.New("no role"))
			return nil, fmt.Errorf("listing secretstores: %w", refusal)
		}
	}, func(t *testing.T, r *rig) {
		after(10 * time.Minute)
		const want = "store main: referenced paths: listing references: listing secretstores: secretstores is forbidden: no role"
		if err := r.feed.Ready(); err == nil || err.Error() != want {
			t.Errorf("without the permission: got %v\nwant %s", err, want)
		}
		granted.Store(true)
		after(2 * time.Minute)
		// The mount still cannot be read.
		if err := r.feed.Ready(); err != nil {
			t.Errorf("with the permission: %v", err)
		}
	})
}

const (
	pollReferenced = withToken + "{interval: 1m, referenced: true}}]"
	forbidden      = `{"errors":["permission denied"]}`
)

// referenceTo returns a reference to a path of the fake store.
func referenceTo(namespace, mount, path string) Reference {
	return Reference{Server: "http://bao", Path: events.StorePath{Namespace: namespace, Mount: mount, Path: path}}
}

// referring has a feed poll the references.
func referring(to ...Reference) func(*Options) {
	return func(o *Options) {
		o.Referenced = func(context.Context) ([]Reference, error) { return to, nil }
	}
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
	for _, test := range []struct {
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
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.do("team@sys/internal/ui/mounts", store.answers["sys/internal/ui/mounts"])
			for request, status := range test.answers {
				store.say(request, status, forbidden)
			}
			inBubble(t, pollReferenced, store, referring(test.references...), func(t *testing.T, r *rig) {
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
