package openbao

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

func TestPager(t *testing.T) {
	names := []string{"a", "b", "c/", "d", "e"}
	tests := []struct {
		name string
		// list answers as a store does.
		list     func(after string) []string
		requests int
		ignored  bool
	}{
		{
			name: "a store that answers in pages", requests: 4,
			list: func(after string) []string {
				rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name <= after })
				return rest[:min(2, len(rest))]
			},
		},
		{name: "a store that ignores what it is asked for", requests: 2, ignored: true, list: func(string) []string { return slices.Clone(names) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var pages pager
			var got []string
			requests := 0
			err := pages.each(func(after string) ([]string, error) {
				requests++
				return test.list(after), nil
			}, func(page []string) error {
				got = append(got, page...)
				return nil
			})
			if diff := cmp.Diff(names, got); diff != "" || err != nil || requests != test.requests || pages.ignored != test.ignored {
				t.Errorf("%v after %d requests, ignored: %t; names (-want +got):\n%s", err, requests, pages.ignored, diff)
			}
		})
	}
}

func TestARealStoreIsListedOncePageByPage(t *testing.T) {
	store := startVault(t)
	want := []string{"a", "b", "folder/"}
	put(t, store, "a", "canary")
	put(t, store, "b", "canary")
	put(t, store, "folder/c", "canary")
	r := newRig(t, vaultConfig(store, "{interval: 1m, mounts: [secret]}"), nil)
	client := r.feed.pipelines[0].client
	defer client.close()
	var pages pager
	var got []string
	err := pages.each(func(after string) ([]string, error) {
		return client.list(t.Context(), events.RootNamespace, "secret/metadata/", after)
	}, func(page []string) error {
		got = append(got, page...)
		return nil
	})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v; names (-want +got):\n%s", err, diff)
	}
}
