package kube

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestALongMessageIsCutBetweenCharacters(t *testing.T) {
	for length := maxEventMessage - 6; length < maxEventMessage+6; length++ {
		text := strings.Repeat("x", length%3) + strings.Repeat("€", length/3)
		got := Event{Message: text}.Object().Message
		if len(got) > maxEventMessage || !utf8.ValidString(got) {
			t.Errorf("of %d bytes are left %d: %q", len(text), len(got), got[max(0, len(got)-8):])
		}
		if cut := strings.HasSuffix(got, "..."); cut != (len(text) > maxEventMessage) {
			t.Errorf("of %d bytes are left %d, ending in dots: %t", len(text), len(got), cut)
		}
	}
}
