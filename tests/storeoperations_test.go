package tests

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/vault/api"

	"github.com/keyturn/keyturn/tests/programs"
)

// TestEveryOperationOnASecretIsAnEventAndIsReadAnew does to one secret what can be done to it, one after the other.
func TestEveryOperationOnASecretIsAnEventAndIsReadAnew(t *testing.T) {
	t.Parallel()
	password := func(value string) map[string]any { return map[string]any{"password": value} }
	steps := []struct {
		name    string
		do      func(context.Context, *api.KVv2) error
		event   string
		content string // of the Secret after it
	}{
		{"the first write of a key", func(ctx context.Context, kv *api.KVv2) error {
			return second(kv.Put(ctx, "shop/db", password("one")))
		}, "rotated create 1", "one"},
		{"an update", func(ctx context.Context, kv *api.KVv2) error {
			return second(kv.Put(ctx, "shop/db", password("two")))
		}, "rotated update 2", "two"},
		{"a patch", func(ctx context.Context, kv *api.KVv2) error {
			return second(kv.Patch(ctx, "shop/db", password("three")))
		}, "rotated patch 3", "three"},
		{"a deletion of the latest version", func(ctx context.Context, kv *api.KVv2) error {
			return kv.Delete(ctx, "shop/db")
		}, "deleted delete 3", "three"},
		{"an undeletion", func(ctx context.Context, kv *api.KVv2) error {
			return kv.Undelete(ctx, "shop/db", []int{3})
		}, "rotated undelete 3", "three"},
		{"a deletion of a version by its number", func(ctx context.Context, kv *api.KVv2) error {
			return kv.DeleteVersions(ctx, "shop/db", []int{3})
		}, "deleted delete 3", "three"},
		{"a write after a deletion", func(ctx context.Context, kv *api.KVv2) error {
			return second(kv.Put(ctx, "shop/db", password("four")))
		}, "rotated update 4", "four"},
		{"a rollback", func(ctx context.Context, kv *api.KVv2) error {
			return second(kv.Rollback(ctx, "shop/db", 2))
		}, "rotated update 5", "two"},
		{"a destruction", func(ctx context.Context, kv *api.KVv2) error {
			return kv.Destroy(ctx, "shop/db", []int{5})
		}, "deleted destroy 5", "two"},
		{"a write after a destruction", func(ctx context.Context, kv *api.KVv2) error {
			return second(kv.Put(ctx, "shop/db", password("six")))
		}, "rotated update 6", "six"},
		{"a deletion of the metadata", func(ctx context.Context, kv *api.KVv2) error {
			return kv.DeleteMetadata(ctx, "shop/db")
		}, "deleted delete 0", "six"},
		{"a write of what is gone", func(ctx context.Context, kv *api.KVv2) error {
			return second(kv.Put(ctx, "shop/db", password("seven")))
		}, "rotated create 1", "seven"},
	}
	s := newStoreRig(t, byHTTP, programs.Options{})
	// It cannot be synced yet.
	s.applyExternalSecret("db", "shop/db")
	s.start()
	kv := s.store.Client().KVv2("secret")
	var want []string
	for _, step := range steps {
		if err := step.do(t.Context(), kv); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		change := s.awaitEvent("shop/db", step.event)
		want = append(want, "secret/shop/db "+step.event)
		s.awaitAsked("db", change.ID())
		s.awaitContent("db", step.content)
	}
	refused := []struct {
		name string
		do   func() error
	}{
		{"a write with another version for its condition", func() error {
			return second(kv.Put(t.Context(), "shop/db", password("eight"), api.WithCheckAndSet(7)))
		}},
		{"a patch of what is not there", func() error {
			return second(kv.Patch(t.Context(), "shop/none", password("eight"), api.WithMergeMethod(api.KVMergeMethodPatch)))
		}},
	}
	for _, step := range refused {
		if err := step.do(); err == nil {
			t.Errorf("%s was not refused", step.name)
		}
	}
	if err := kv.PutMetadata(t.Context(), "shop/db", api.KVMetadataPutInput{MaxVersions: 7}); err != nil {
		t.Fatal(err)
	}
	s.put("shop/last", "one")
	s.awaitEvent("shop/last", "rotated create 1")
	want = append(want, "secret/shop/last rotated create 1")
	if diff := cmp.Diff(want, s.storeEvents()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// second returns its second argument.
func second[T any](_ T, err error) error { return err }
