package openbao

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/vault/api"

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
