package actuate

import (
	"testing"
	"time"
)

func TestOutcomesLetPatchesGoFirst(t *testing.T) {
	tests := []struct {
		name     string
		waiting  int
		patching bool
		after    time.Duration
		want     bool
	}{
		{"nothing is to be told", 0, false, 0, false},
		{"no patch is under way", 1, false, 0, true},
		{"a patch is under way", 1, true, 0, false},
		{"patches are under way for long", 1, true, outboxPatience, true},
		{"as many wait as there may", outboxSize, true, 0, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			now := written
			o := newOutbox(func() time.Time { return now })
			for range test.waiting {
				o.add(report{outcome: outcomeOf("web")})
			}
			now = written.Add(test.after)
			if got := o.due(test.patching); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
