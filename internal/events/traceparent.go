package events

import (
	"encoding/hex"
	"fmt"
)

// traceparent is TraceContext.Parent in binary form: the trace ID, the span ID and the flags. The zero value means that there is none.
type traceparent [16 + 8 + 1]byte

// newTraceparent returns the zero value for a text that does not have the form 00-<32 hex digits>-<16 hex digits>-<2 hex digits>.
func newTraceparent(text string) (t traceparent) {
	if len(text) != 55 || text[:3] != "00-" || text[35] != '-' || text[52] != '-' {
		return traceparent{}
	}
	if _, err := hex.Decode(t[:], []byte(text[3:35]+text[36:52]+text[53:])); err != nil {
		return traceparent{}
	}
	return t
}

// text is the inverse of newTraceparent.
func (t traceparent) text() string {
	if t == (traceparent{}) {
		return ""
	}
	return fmt.Sprintf("00-%x-%x-%x", t[:16], t[16:24], t[24:])
}
