package openbao

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

// Whoever may write ExternalSecrets decides how many paths are referenced.
func TestANamespaceThatIsRefusedIsAskedForOnceInAPoll(t *testing.T) {
	const mounts = "@sys/internal/ui/mounts"
	tests := []struct {
		name      string
		namespace string
		mount     string // of 50 references
		status    int
		refused   string
		reason    string
	}{
		{name: "a mount that the token does not see", namespace: "root", mount: "other", status: 404, refused: "other", reason: "no-mount"},
		{name: "which the store forbids as a namespace", namespace: "root", mount: "other", status: 403, refused: "other", reason: "no-mount"},
		{name: "several such mounts with one segment before them", namespace: "root", mount: "other/%d", status: 403, refused: "other", reason: "no-mount"},
		{name: "a namespace that is not there", namespace: "other", mount: "secret", status: 404, refused: "other", reason: "no-mount"},
		{name: "a namespace that is forbidden", namespace: "other", mount: "%d", status: 403, refused: "other", reason: "forbidden"},
		{name: "a mount that the token does not see in a namespace", namespace: "team", mount: "other", status: 403, refused: "team/other", reason: "no-mount"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore(kv2)
			store.do("team"+mounts, store.answers["sys/internal/ui/mounts"])
			store.say(test.refused+mounts, test.status, forbidden)
			references := []Reference{referenceTo(events.RootNamespace, "secret", "db")}
			for n := range 50 {
				mount := strings.ReplaceAll(test.mount, "%d", fmt.Sprint(n))
				references = append(references, referenceTo(test.namespace, mount, fmt.Sprintf("app-%d/db", n)))
			}
			store.say("secret/metadata/db", http.StatusOK, metadataOf(3, "1999-01-01T00:00:00Z", ""))
			referenced := func(context.Context) ([]Reference, error) { return references, nil }
			inBubble(t, pollReferenced, store, func(o *Options) { o.Referenced = referenced }, func(t *testing.T, r *rig) {
				after(10 * time.Minute)
				polls := int(r.count(t, "keyturn.openbao.polls", "success"))
				if got := store.times(test.refused + mounts); polls < 9 || got != polls {
					t.Errorf("asked %d times in %d polls, want once in each", got, polls)
				}
				if log := r.log.String(); !strings.Contains(log, "reason="+test.reason) {
					t.Errorf("%s is not logged:\n%.2000s", test.reason, log)
				}
				if diff := cmp.Diff([]string{"secret/db"}, paths(r.seen())); diff != "" {
					t.Errorf("observed (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestANamespaceThatIsNotRefusedAnyMoreIsRead(t *testing.T) {
	store := newFakeStore(kv2)
	store.say("team@sys/internal/ui/mounts", http.StatusForbidden, forbidden)
	store.say("team@secret/metadata/db", http.StatusOK, metadataOf(3, "1999-01-01T00:00:00Z", ""))
	references := []Reference{referenceTo(events.RootNamespace, "team", "secret/db"), referenceTo("team", "secret", "db")}
	referenced := func(context.Context) ([]Reference, error) { return references, nil }
	inBubble(t, pollReferenced, store, func(o *Options) { o.Referenced = referenced }, func(t *testing.T, r *rig) {
		after(5 * time.Minute)
		if seen := paths(r.seen()); len(seen) > 0 {
			t.Errorf("%v was observed", seen)
		}
		store.do("team@sys/internal/ui/mounts", store.answers["sys/internal/ui/mounts"])
		after(2 * time.Minute)
		if diff := cmp.Diff([]string{"team/secret/db"}, paths(r.seen())); diff != "" {
			t.Errorf("observed (-want +got):\n%s\n%s", diff, r.log)
		}
	})
}

func TestRefusals_AreFewFinalAndForgotten(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	r := newRefusals(func() time.Time { return now })
	forbids := &statusError{code: http.StatusForbidden}
	tests := []struct {
		name, namespace string
		err             error
		age             time.Duration
		want            error
	}{
		{name: "a namespace that is forbidden", namespace: "a", err: forbids, want: forbids},
		{name: "one that is not there", namespace: "b", err: errNotThere, want: errNoMount},
		{name: "until it is asked for again", namespace: "d", err: forbids, age: maxNoMountAge},
		{name: "an answer that may be another one now", namespace: "c", err: &statusError{code: http.StatusServiceUnavailable}},
		{name: "the root namespace, which is always there", namespace: events.RootNamespace, err: errNotThere},
		{name: "no error", namespace: "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r.note(test.namespace, now.Add(-test.age), test.err)
			if got := r.of(test.namespace); !errors.Is(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	for n := range 2 * maxNamespaces {
		r.note(fmt.Sprint(n), now, forbids)
	}
	if len(r.byNamespace) > maxNamespaces {
		t.Errorf("%d namespaces are remembered, want %d at most", len(r.byNamespace), maxNamespaces)
	}
}
