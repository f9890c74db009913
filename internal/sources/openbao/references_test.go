package openbao

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/vault/api"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestReferencedPathsArePolledWhateverElseIsForbidden(t *testing.T) {
	store := startVault(t)
	must(t, store.MountKV(t.Context(), "old", 1))
	put(t, store, "shop/db", "canary")
	put(t, store, "secret-plans", "canary")
	policy := `path "secret/metadata/shop/*" { capabilities = ["read"] }
path "old/*" { capabilities = ["read"] }`
	must(t, store.Client().Sys().PutPolicyWithContext(t.Context(), "watcher", policy))
	must(t, store.Client().Sys().EnableAuthWithOptionsWithContext(t.Context(), "approle", &api.EnableAuthOptions{Type: "approle"}))
	logical := store.Client().Logical()
	_, err := logical.WriteWithContext(t.Context(), "auth/approle/role/watcher", map[string]any{"token_policies": "watcher", "token_ttl": "3s"})
	must(t, err)
	roleID, err := logical.ReadWithContext(t.Context(), "auth/approle/role/watcher/role-id")
	must(t, err)
	secretID, err := logical.WriteWithContext(t.Context(), "auth/approle/role/watcher/secret-id", nil)
	must(t, err)
	path := func(mount, path string) events.StorePath {
		return events.StorePath{Store: "main", Namespace: events.RootNamespace, Mount: mount, Path: path}
	}
	config := fmt.Sprintf("stores: [{name: main, address: %q, auth: {appRole: {roleId: %q, secretIdFile: %q}}, poll: {interval: 1s, referenced: true}}]",
		store.Address(), roleID.Data["role_id"], write(t, "secret-id", secretID.Data["secret_id"].(string)))
	var mu sync.Mutex
	read := func(mount, name string) Reference {
		return Reference{Server: strings.ToLower(store.Address()), Path: path(mount, name)}
	}
	referenced := []Reference{
		read("secret", "shop/db"), read("secret", "shop/db"), read("secret", "secret-plans"), read("secret", "shop/never"), read("old", "x"), read("nowhere", "x"),
		{Server: "https://other", Path: path("secret", "shop/mail")},
	}
	r := newRig(t, config, func(o *Options) {
		o.Referenced = func(context.Context) ([]Reference, error) {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(referenced), nil
		}
	})
	r.start(t)
	if o := r.next(t); o.Path != path("secret", "shop/db") || o.State != Live {
		t.Errorf("%+v, want the path that may be read", o)
	}
	testkit.Eventually(t, "it is ready", func() bool { return r.feed.Ready() == nil })
	for _, want := range []string{"reason=forbidden", "reason=unversioned", "reason=no-mount"} {
		if got := strings.Count(r.log.String(), want); got != 1 {
			t.Errorf("%s is logged %d times, want once:\n%s", want, got, r.log)
		}
	}
	// The token expires after three seconds. It is renewed or replaced, so that polling continues.
	polls := r.count(t, "keyturn.openbao.polls", "success")
	testkit.Eventually(t, "polling goes on", func() bool { return r.count(t, "keyturn.openbao.polls", "success") >= polls+6 })
	if r.count(t, "keyturn.openbao.polls", "failure") != 0 {
		t.Errorf("polls have failed:\n%s", r.log)
	}
	for len(r.sink) > 0 {
		if o := <-r.sink; o.Path != path("secret", "shop/db") {
			t.Errorf("%+v was observed", o)
		}
	}
}

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
		{name: "as it is", reference: referenceTo("root", "secret", "shop/db"), request: "secret/metadata/shop/db", want: "secret/shop/db"},
		{name: "a mount with a slash, taken to be its first segment", reference: referenceTo("root", "team", "database/static-creds/app"), request: "team/database/static-roles/app", want: "team/database/static-creds/app"},
		{name: "a namespace before the mount", reference: referenceTo("root", "a/b/secret", "shop/db"), request: "a/b@secret/metadata/shop/db", want: "a/b/secret/shop/db"},
		{name: "a namespace that is taken to be the mount", reference: referenceTo("root", "a", "b/secret/shop/db"), request: "a/b@secret/metadata/shop/db", want: "a/b/secret/shop/db"},
		{name: "a namespace before the mount, in another namespace", reference: referenceTo("a", "b/secret", "shop/db"), request: "a/b@secret/metadata/shop/db", want: "a/b/secret/shop/db"},
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
