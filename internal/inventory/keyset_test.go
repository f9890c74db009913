package inventory

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/workload"
)

func TestAKeySetHasWhatWasAddedAndNotRemoved(t *testing.T) {
	for _, tt := range []struct {
		name string
		// steps add a workload, or remove it if they begin with "-".
		steps []string
		want  []string
	}{
		{"nothing", nil, nil},
		{"one", []string{"a"}, []string{"a"}},
		{"one twice", []string{"a", "a"}, []string{"a"}},
		{"two", []string{"a", "b"}, []string{"a", "b"}},
		{"three, one of them twice", []string{"a", "b", "c", "b"}, []string{"a", "b", "c"}},
		{"the only one removed", []string{"a", "-a"}, nil},
		{"another removed than the only one", []string{"a", "-b"}, []string{"a"}},
		{"one of two removed", []string{"a", "b", "-a"}, []string{"b"}},
		{"both removed, and one added again", []string{"a", "b", "-a", "-b", "b"}, []string{"b"}},
		{"all of many removed", []string{"a", "b", "c", "-c", "-b", "-a"}, nil},
		{"removed from nothing", []string{"-a"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			key := func(name string) workload.Key {
				return workload.Key{Kind: "deployment", Namespace: "shop", Name: strings.TrimPrefix(name, "-")}
			}
			var s keySet
			for _, step := range tt.steps {
				if strings.HasPrefix(step, "-") {
					s = s.without(key(step))
				} else {
					s = s.with(key(step))
				}
			}
			var got []string
			for k := range s.all() {
				got = append(got, k.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the workloads (-want +got):\n%s", diff)
			}
			if s.len() != len(tt.want) {
				t.Errorf("%d workloads, want %d", s.len(), len(tt.want))
			}
			for _, name := range []string{"a", "b", "c"} {
				if has, want := s.has(key(name)), slices.Contains(tt.want, name); has != want {
					t.Errorf("has %s: %t, want %t", name, has, want)
				}
			}
			if s.has(workload.Key{}) {
				t.Error("it has a workload without a name")
			}
		})
	}
}
