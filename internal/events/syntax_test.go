package events

import (
	"strings"
	"testing"
)

func FuzzParseSum(f *testing.F) {
	for _, text := range []string{
		sum("f"), "k:" + strings.Repeat("0", 32), "k0A:" + strings.Repeat("A", 32), strings.TrimPrefix(sum("1"), "k"),
		"k0a:", "k:", "k", "", "kk:" + strings.Repeat("1", 32), sum("1") + "1", "k0a:0b:" + strings.Repeat("1", 32),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keyID, s, err := parseSum(text)
		if err == nil && s.Text(keyID) != text {
			t.Errorf("%q was read as %q", text, s.Text(keyID))
		}
	})
}

func FuzzTraceparent(f *testing.F) {
	for _, text := range []string{
		change().Trace.Parent, strings.ToUpper(change().Trace.Parent), "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01",
		"01" + change().Trace.Parent[2:], strings.Repeat("-", 55), "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := newTraceparent(text)
		if read != (traceparent{}) && read.text() != strings.ToLower(text) {
			t.Errorf("%q was read as %q", text, read.text())
		}
	})
}

func TestVersionsAreOrderedByTheirAge(t *testing.T) {
	for _, tt := range []struct {
		name, a, b string
		want       int
		// newer says whether the first is known to be newer.
		newer bool
	}{
		{"the first is older, and has fewer digits", "99", "100", -1, false},
		{"the first is newer, and has more digits", "100", "99", 1, true},
		{"they are the same", "100", "100", 0, false},
		{"both have more than 64 bits", "99999999999999999999999", "99999999999999999999998", 1, true},
		{"the first is none, and has more digits", "latest", "100", -1, false},
		{"the first has leading zeros", "00101", "100", -1, false},
		{"there is no first", "", "100", -1, false},
		{"there is no second", "100", "", 1, false},
		{"both are none", "x", "latest", 0, false},
		{"the first is that of content that has never changed", "0", "5", -1, false},
		{"the second is that of content that has never changed", "5", "0", 1, true},
		{"the first is, and there is no second", "0", "", 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, back := CompareVersions(tt.a, tt.b), CompareVersions(tt.b, tt.a); got != tt.want || back != -tt.want {
				t.Errorf("got %d, and %d the other way round, want %d", got, back, tt.want)
			}
			if got := Newer(tt.a, tt.b); got != tt.newer {
				t.Errorf("newer is %t, want %t", got, tt.newer)
			}
		})
	}
}
