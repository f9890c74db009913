package openbao

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWalk_ReturnsTheSecretsInAllFolders(t *testing.T) {
	store := newFakeStore(kv2)
	store.say("secret/metadata?list", http.StatusOK, `{"data":{"keys":["a","folder/","locked/"]}}`)
	store.say("secret/metadata/folder?list", http.StatusOK, `{"data":{"keys":["b","deep/"]}}`)
	store.say("secret/metadata/folder/deep?list", http.StatusOK, `{"data":{"keys":["c"]}}`)
	store.say("secret/metadata/locked?list", http.StatusForbidden, `{"errors":["permission denied"]}`)
	in := engineMount{namespace: "root", path: "secret", engine: "kv", version: kvV2}
	c, tolerated := clientOf(t, store), 0
	list := func(folder, after string) ([]string, error) {
		return c.list(t.Context(), "root", "secret/metadata/"+folder, after)
	}
	var got []string
	found := func(path string) error { got = append(got, path); return nil }
	err := walk(in, list, found, func(error) bool { tolerated++; return true })
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "folder/b", "folder/deep/c"}, got); diff != "" || err != nil || tolerated != 1 {
		t.Errorf("%v, %d folders tolerated; paths (-want +got):\n%s", err, tolerated, diff)
	}
	if err := walk(in, list, found, func(error) bool { return false }); code(err) != http.StatusForbidden {
		t.Errorf("%v, want the error of the folder", err)
	}
}

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
