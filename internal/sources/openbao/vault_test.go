package openbao

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/vault/api"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/secretstore"
	"github.com/keyturn/keyturn/tests/testkit"
)

// startVault starts a real store. It skips the test if the binary was not built: that takes minutes, and `make e2e` does it.
func startVault(t *testing.T) *secretstore.Store {
	t.Helper()
	if !secretstore.OpenBao() {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := build.Binary(ended, io.Discard, build.Vault); err != nil {
			t.Skip("Vault was not built yet: go run ./tests/testbed/cmd/build")
		}
	}
	store, err := secretstore.Start(t.Context(), secretstore.Options{})
	testkit.Must(t, err)
	t.Cleanup(store.Stop)
	return store
}

// vaultConfig returns a configuration of the store.
func vaultConfig(store *secretstore.Store, poll string) string {
	return fmt.Sprintf("stores: [{name: main, address: %q, auth: {token: %q}, poll: %s}]", store.Address(), store.Token(), poll)
}

// put writes a secret and returns the metadata of its version.
func put(t *testing.T, store *secretstore.Store, path, value string) *api.KVVersionMetadata {
	t.Helper()
	secret, err := store.Client().KVv2("secret").Put(t.Context(), path, map[string]any{"password": value})
	testkit.Must(t, err)
	return secret.VersionMetadata
}

func TestEachChangeOfARealStoreIsSeenInTheFileThatALogShipperPosts(t *testing.T) {
	store := startVault(t)
	testkit.Must(t, store.MountKV(t.Context(), "old", 1))
	testkit.Must(t, store.MountKV(t.Context(), "team/data/kv", 2))
	testkit.Must(t, store.AuditTraceparent(t.Context()))
	r := newRig(t, vaultConfig(store, "{}"), func(o *Options) {
		o.receive(t, "tokenFile: "+write(t, "tokens", goodToken))
	})
	r.start(t)
	testkit.Eventually(t, "the feed listens", func() bool { return r.address() != "" })
	testkit.Must(t, store.AuditToFile(t.Context()))
	s := &shipper{t: t, client: newClientOf(t, nil), file: store.AuditFile("file")}
	url := "http://" + r.address() + "/v1/audit/main"

	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	kv, client := store.Client().KVv2("secret"), store.Client()
	traced := client.WithNamespace("")
	traced.AddHeader("traceparent", parent)
	logical := func(path string, data map[string]any) error {
		_, err := client.Logical().WriteWithContext(t.Context(), path, data)
		return err
	}
	steps := []struct {
		name string
		do   func() error
		want Observation
	}{
		{
			name: "first write", do: func() error {
				_, err := traced.KVv2("secret").Put(t.Context(), "shop/db", map[string]any{"password": "canary-one"})
				return err
			},
			want: Observation{Version: 1, State: Live, Operation: "create", Trace: events.TraceContext{Parent: parent}},
		},
		{
			name: "second write", do: func() error { put(t, store, "shop/db", strings.Repeat("canary-two", 1000)); return nil },
			want: Observation{Version: 2, State: Live, Operation: "update"},
		},
		{
			name: "patch", do: func() error {
				_, err := kv.Patch(t.Context(), "shop/db", map[string]any{"user": "canary-three"})
				return err
			},
			want: Observation{Version: 3, State: Live, Operation: "patch"},
		},
		{
			name: "delete", do: func() error { return kv.Delete(t.Context(), "shop/db") },
			want: Observation{Version: 3, State: Deleted, Operation: "delete"},
		},
		{
			name: "undelete", do: func() error { return kv.Undelete(t.Context(), "shop/db", []int{3}) },
			want: Observation{Version: 3, State: Live, Operation: "undelete"},
		},
		{
			name: "delete of versions", do: func() error { return kv.DeleteVersions(t.Context(), "shop/db", []int{2, 3}) },
			want: Observation{Version: 3, State: Deleted, Operation: "delete"},
		},
		{
			name: "rollback", do: func() error { _, err := kv.Rollback(t.Context(), "shop/db", 1); return err },
			want: Observation{Version: 4, State: Live, Operation: "update"},
		},
		{
			// Readers see no change.
			name: "destroy of an old version", do: func() error { return kv.Destroy(t.Context(), "shop/db", []int{1}) },
			want: Observation{Version: 4, State: Live},
		},
		{
			name: "destroy", do: func() error { return kv.Destroy(t.Context(), "shop/db", []int{4}) },
			want: Observation{Version: 4, State: Destroyed, Operation: "destroy"},
		},
		{
			name: "metadata delete", do: func() error { return kv.DeleteMetadata(t.Context(), "shop/db") },
			want: Observation{State: Gone, Operation: "delete"},
		},
		{
			name: "write anew", do: func() error { put(t, store, "shop/db", "canary-four"); return nil },
			want: Observation{Version: 1, State: Live, Operation: "create"},
		},
		{
			name: "write in a mount with a misleading name",
			do: func() error {
				return logical("team/data/kv/data/shop/db", map[string]any{"data": map[string]any{"a": "b"}})
			},
			want: Observation{
				Path: events.StorePath{Mount: "team/data/kv"}, Version: 1, State: Live, Operation: "create",
			},
		},
		{
			name: "write to KV v1", do: func() error { return logical("old/shop/db", map[string]any{"password": "canary-five"}) },
			want: Observation{Path: events.StorePath{Mount: "old"}, State: Live, Operation: "create"},
		},
		{
			name: "second write to KV v1, in a folder with a misleading name",
			do:   func() error { return logical("old/data/db", map[string]any{"password": "canary-five"}) },
			want: Observation{Path: events.StorePath{Mount: "old", Path: "data/db"}, State: Live, Operation: "create"},
		},
		{
			name: "delete in KV v1", do: func() error { _, err := client.Logical().DeleteWithContext(t.Context(), "old/shop/db"); return err },
			want: Observation{Path: events.StorePath{Mount: "old"}, State: Gone, Operation: "delete"},
		},
	}
	for _, step := range steps {
		began := time.Now()
		testkit.Must(t, step.do())
		s.ship(url)
		got := r.next(t)
		t.Logf("%s: seen after %v", step.name, time.Since(began))
		want := step.want
		want.Path.Store, want.Path.Namespace = "main", events.RootNamespace
		want.Path.Mount, want.Path.Path = orElse(want.Path.Mount, "secret"), orElse(want.Path.Path, "shop/db")
		want.Servers, want.Engine = []string{store.Address()}, events.EngineKV
		if want.Operation != "" {
			want.By = "root"
		}
		isPlain := want.Path.Mount == "old"
		if (got.Request != "") != isPlain || isPlain && !got.ReadAt.IsZero() {
			t.Errorf("%s: request %q, read at %v", step.name, got.Request, got.ReadAt)
		}
		if at := got.At; at.IsZero() || at.After(time.Now()) {
			t.Errorf("%s: at %v", step.name, at)
		}
		got.Request, got.At, got.ReadAt, got.Received, got.PolledBefore = "", time.Time{}, time.Time{}, time.Time{}, time.Time{}
		wantEqual(t, step.name, want, got)
	}

	// Reads, lists and failed requests are not observed. The write after them is next.
	_, err := kv.Get(t.Context(), "shop/db")
	testkit.Must(t, err)
	_, err = client.Logical().ListWithContext(t.Context(), "secret/metadata")
	testkit.Must(t, err)
	testkit.Must(t, kv.PutMetadata(t.Context(), "shop/db", api.KVMetadataPutInput{MaxVersions: 3}))
	if _, err := kv.Put(t.Context(), "shop/db", map[string]any{"a": "b"}, api.WithCheckAndSet(7)); err == nil {
		t.Fatal("a write with a wrong version succeeded")
	}
	put(t, store, "shop/last", "canary-six")
	s.ship(url)
	if got := r.next(t); got.Path.Path != "shop/last" {
		t.Errorf("%+v was observed, want only the last write", got)
	}
	if strings.Contains(r.log.String(), "canary") || strings.Contains(r.log.String(), "hmac") || strings.Contains(r.log.String(), store.Token()) {
		t.Error("the log has a value, an HMAC or the token")
	}
}

func TestPollingARealStoreFindsWhatItsAuditDidNotTell(t *testing.T) {
	store := startVault(t)
	kv := store.Client().KVv2("secret")
	for i := range 30 {
		put(t, store, fmt.Sprintf("shop/%d/db", i), "canary")
	}
	written := put(t, store, "top", "canary")
	put(t, store, "deleted", "canary")
	testkit.Must(t, kv.Delete(t.Context(), "deleted"))
	put(t, store, "destroyed", "canary")
	testkit.Must(t, kv.Destroy(t.Context(), "destroyed", []int{1}))
	testkit.Must(t, kv.PutMetadata(t.Context(), "empty", api.KVMetadataPutInput{MaxVersions: 3}))
	r := newRig(t, vaultConfig(store, "{interval: 1s, mounts: [secret]}"), func(o *Options) {
		o.Known = func(store, namespace, mount string) []string {
			if store != "main" || namespace != events.RootNamespace || mount != "secret" {
				t.Errorf("asked for what is known in %s, %s, %s", store, namespace, mount)
			}
			return []string{"top", "vanished", "empty"}
		}
	})
	if err := r.feed.Ready(); err == nil {
		t.Error("it is ready before it runs")
	}
	r.start(t)
	seen := map[string]State{}
	for len(seen) < 35 {
		o := r.next(t)
		if o.Path.Path == "top" && (o.Version != 1 || !o.At.Equal(written.CreatedTime) || o.Operation != "" || o.ReadAt.IsZero() || o.ReadAt.After(o.Received)) {
			t.Errorf("%+v, want version 1 of %v", o, written.CreatedTime)
		}
		seen[o.Path.Path] = o.State
	}
	for path, want := range map[string]State{
		"shop/7/db": Live, "top": Live, "deleted": Deleted, "destroyed": Destroyed, "vanished": Gone, "empty": Gone,
	} {
		if seen[path] != want {
			t.Errorf("%s is %v, want %v", path, seen[path], want)
		}
	}
	testkit.Eventually(t, "it is ready", func() bool { return r.feed.Ready() == nil })

	put(t, store, "shop/7/db", "canary")
	r.nextVersion(t, "shop/7/db", 2)
	testkit.Must(t, kv.Undelete(t.Context(), "deleted", []int{1}))
	r.nextWhere(t, "deleted", Live)

	// The store is down for a while. What happened meanwhile is found.
	store.Kill()
	testkit.Eventually(t, "polling has failed", func() bool { return r.count(t, "keyturn.openbao.polls", "failure") > 1 })
	testkit.Must(t, store.Start(t.Context()))
	put(t, store, "top", "canary")
	r.nextVersion(t, "top", 2)
	if err := r.feed.Ready(); err != nil {
		t.Errorf("it was ready, and is not any more: %v", err)
	}
	if logged := strings.Count(r.log.String(), "unreachable"); logged != 1 {
		t.Errorf("the log has %d times that the store is unreachable, want once:\n%s", logged, r.log)
	}
}
