package openbao

import (
	"encoding/json"
	"time"
)

// The types below decode leniently: the audit log replaces values with HMACs, so a time or a number can be any text.

// instant is a time. Anything that is not a time decodes to zero, and so does a time outside the years below: events have times as nanoseconds
// since 1970, and 64 bits of them end in the year 2262.
type instant time.Time

// The years that a valid time can have: from firstYear up to, but not including, lastYear.
const (
	firstYear = 1970
	lastYear  = 2200
)

func (i *instant) UnmarshalJSON(text []byte) error {
	var t time.Time
	if t.UnmarshalJSON(text) == nil && t.UTC().Year() >= firstYear && t.UTC().Year() < lastYear {
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
