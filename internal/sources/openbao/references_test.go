package openbao

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A SecretStore without a path has keys that begin with the mount, and one without a namespace may have the namespace in its path.
func TestAReferenceIsReadInTheMountThatTheStoreHas(t *testing.T) {
	const mounts = `{"data":{"secret":{%s}}}`
	kv, roles := `"secret/":{"type":"kv","options":{"version":"2"}}`, `"team/database/":{"type":"database"}`
	tests := []struct {
		name      string
		reference Reference
		request   string
		want      string
	}{
		{name: "a mount with a slash, taken to be its first segment", reference: referenceTo("root", "team", "database/static-creds/app"), request: "team/database/static-roles/app", want: "team/database/static-creds/app"},
		{name: "a namespace before the mount", reference: referenceTo("root", "a/b/secret", "shop/db"), request: "a/b@secret/metadata/shop/db", want: "a/b/secret/shop/db"},
		{name: "a namespace that is taken to be the mount", reference: referenceTo("root", "a", "b/secret/shop/db"), request: "a/b@secret/metadata/shop/db", want: "a/b/secret/shop/db"},
		{name: "a namespace that is not there", reference: referenceTo("root", "nowhere/b/secret", "shop/db")},
		{name: "a mount that is not there", reference: referenceTo("root", "a/b/other", "shop/db")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newFakeStore("{" + kv + "," + roles + "}")
			store.say("a@sys/internal/ui/mounts", http.StatusOK, fmt.Sprintf(mounts, ""))
			store.say("a/b@sys/internal/ui/mounts", http.StatusOK, fmt.Sprintf(mounts, kv))
			answer := metadataOf(3, "1999-01-01T00:00:00Z", "")
			if strings.Contains(test.request, "static-roles") {
				answer = `{"data":{"last_vault_rotation":"1999-01-01T00:00:00Z"}}`
			}
			if test.request != "" {
				store.say(test.request, http.StatusOK, answer)
			}
			referenced := func(context.Context) ([]Reference, error) { return []Reference{test.reference}, nil }
			inBubble(t, pollReferenced, store, func(o *Options) { o.Referenced = referenced }, func(t *testing.T, r *rig) {
				after(10 * time.Minute)
				var want []string
				if test.want != "" {
					want = []string{test.want}
				}
				if diff := cmp.Diff(want, paths(r.seen())); diff != "" {
					t.Errorf("observed (-want +got):\n%s\n%s", diff, r.log)
				}
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
