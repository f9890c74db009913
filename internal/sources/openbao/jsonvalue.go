package openbao

import (
	"encoding/json"
	"slices"
	"time"
)

// The types below decode leniently: the audit log replaces values by HMACs, so that a time or a number can be any text.

// instant is a time. Anything that is not a time decodes to zero, and so does one that no clock of a store shows: events have times as nanoseconds
// since 1970, of which 64 bits end in the year 2262.
type instant time.Time

// The years of which a store can tell: from firstYear until before lastYear.
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

// maxNamed is the maximum number of versions that a request is taken to name.
const maxNamed = 256

// namedVersions are the versions that the data of a request names. They are nil if it names none, or if one is not a number: many clients
// send texts, which the audit log replaces by HMACs.
type namedVersions []int64

func (n *namedVersions) UnmarshalJSON(text []byte) error {
	var data struct {
		Versions []int64 `json:"versions"`
	}
	unreadable := json.Unmarshal(text, &data)
	if unreadable == nil && len(data.Versions) <= maxNamed && (len(data.Versions) == 0 || slices.Min(data.Versions) >= 1) {
		*n = data.Versions
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
