package workload

import "testing"

func TestVersionsAreOrderedByTheirAge(t *testing.T) {
	for _, tt := range []struct {
		name, a, b string
		want       int
	}{
		{"the first is older, and has fewer digits", "99", "100", -1},
		{"the first is newer", "100", "99", 1},
		{"they are the same", "100", "100", 0},
		{"the first is not valid", "x", "100", 0},
		{"there is no second", "100", "", 0},
		{"the first is that of content that has never changed", NoVersion, "5", -1},
		{"the second is that of content that has never changed", "5", NoVersion, 1},
		{"both are", NoVersion, NoVersion, 0},
		{"one is, and the other is not valid", NoVersion, "x", 0},
		{"one is, and there is no other", "", NoVersion, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := CompareVersions(tt.a, tt.b); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
			if got := Newer(tt.a, tt.b); got != (tt.want > 0) {
				t.Errorf("newer is %t, want what the order says", got)
			}
		})
	}
}
