package workload

import "testing"

func TestManyKeysAreCounted(t *testing.T) {
	for want, keys := range map[string][]string{
		"":                      nil,
		"a":                     {"a"},
		"a, b, c, d, e":         {"a", "b", "c", "d", "e"},
		"a, b, c, d, e, 2 more": {"a", "b", "c", "d", "e", "f", "g"},
	} {
		if got := JoinKeys(keys); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
