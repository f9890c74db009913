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
	in := engineMount{namespace: "root", path: "secret", engine: "kv"}
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

func TestWalk_ReadsAFolderPageByPage(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	for _, test := range []struct {
		name     string
		list     func(after string) []string // as a store does
		requests int                         // for both folders
	}{
		{name: "a store that answers in pages", requests: 6, list: func(after string) []string {
			rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name <= after })
			return rest[:min(2, len(rest))]
		}},
		{name: "a store that ignores what it is asked for", requests: 4, list: func(string) []string { return slices.Clone(names) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			requests := 0
			err := walk(engineMount{path: "secret"}, func(folder, after string) ([]string, error) {
				requests++
				if folder == "" && after == "" {
					return []string{"folder/"}, nil
				}
				if folder == "" {
					return nil, nil
				}
				return test.list(after), nil
			}, func(path string) error { got = append(got, path); return nil }, nil)
			want := []string{"folder/a", "folder/b", "folder/c", "folder/d", "folder/e"}
			if diff := cmp.Diff(want, got); diff != "" || err != nil || requests != test.requests {
				t.Errorf("%v after %d requests; names (-want +got):\n%s", err, requests, diff)
			}
		})
	}
}
