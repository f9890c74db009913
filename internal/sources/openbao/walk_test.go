package openbao

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
