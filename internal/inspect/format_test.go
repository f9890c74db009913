package inspect

import (
	"bytes"
	"strings"
	"testing"
)

func TestATableIsCutUnlessItIsWide(t *testing.T) {
	for _, tt := range []struct {
		name string
		view View
		want int
	}{
		{"narrow", View{Format: Table, Narrow: true}, narrowWidth},
		{"wide", View{Format: Wide, Narrow: true}, 122},
		{"of a program whose lines are not cut", View{Format: Table}, 122},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			err := tt.view.WriteTable(&out, func(row func(...any)) { row(strings.Repeat("é", 119), "é") })
			if got := len([]rune(strings.TrimSuffix(out.String(), "\n"))); err != nil || got != tt.want {
				t.Errorf("%d columns, want %d (%v)", got, tt.want, err)
			}
		})
	}
}
