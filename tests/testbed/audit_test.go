package testbed

import (
	"strings"
	"testing"
)

func TestTheEndOfTheLinesIsBehindTheLastCompleteOne(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name, text string
		want       int64
	}{
		{name: "nothing is there"},
		{name: "one line is being written", text: "a"},
		{name: "a line is complete", text: "a\n", want: 2},
		{name: "the next one is being written", text: "a\nbc", want: 2},
		{name: "the next one is long", text: "a\n" + long, want: 2},
		{name: "both are long", text: long + "\n" + long, want: 100_001},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := endOfLines(strings.NewReader(tt.text)); err != nil || got != tt.want {
				t.Errorf("got %d, %v, want %d", got, err, tt.want)
			}
		})
	}
}
