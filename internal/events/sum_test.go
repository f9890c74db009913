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
