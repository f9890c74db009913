package openbao

import (
	"encoding/json"
	"time"
)

// The types below decode leniently: the audit log replaces values by HMACs, so that a time or a number can be any text.

// instant is a time. Anything that is not a time decodes to zero.
type instant time.Time

func (i *instant) UnmarshalJSON(text []byte) error {
	var t time.Time
	if t.UnmarshalJSON(text) == nil && !t.IsZero() {
		*i = instant(t.UTC())
	}
	return nil
}

// integer is a positive integer. Anything else decodes to zero.
type integer int64

func (i *integer) UnmarshalJSON(text []byte) error {
	var n int64
	if json.Unmarshal(text, &n) == nil && n > 0 {
		*i = integer(n)
	}
	return nil
}

// filled reports whether a field has a value, whatever its type.
type filled bool

func (f *filled) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `null`, `""`, `false`:
	default:
		*f = true
	}
	return nil
}
