package openbao

import (
	"testing"
	"time"
)

func TestTheStateThatMetadataTells(t *testing.T) {
	now := at(t, "2026-11-20T12:00:00Z")
	created, past, future := instant(at(t, "2026-11-20T11:00:00Z")), instant(at(t, "2026-11-20T11:30:00Z")), instant(at(t, "2026-11-20T12:00:01Z"))
	of := func(change func(*metadata)) *metadata {
		m := &metadata{CurrentVersion: 2}
		m.Versions = map[string]struct {
			CreatedTime  instant `json:"created_time"`
			DeletionTime instant `json:"deletion_time"`
			Destroyed    bool    `json:"destroyed"`
		}{"1": {CreatedTime: created, DeletionTime: past, Destroyed: true}, "2": {CreatedTime: created}}
		change(m)
		return m
	}
	current := func(deleted instant, destroyed bool) func(*metadata) {
		return func(m *metadata) {
			v := m.Versions["2"]
			v.DeletionTime, v.Destroyed = deleted, destroyed
			m.Versions["2"] = v
		}
	}
	tests := []struct {
		name     string
		metadata *metadata
		version  int64
		state    State
		at       instant
		bad      bool
	}{
		{name: "a version that is there", metadata: of(func(*metadata) {}), version: 2, state: Live, at: created},
		{name: "a deletion that is ahead", metadata: of(current(future, false)), version: 2, state: Live, at: created},
		{name: "a deletion", metadata: of(current(past, false)), version: 2, state: Deleted, at: past},
		{name: "a deletion just now", metadata: of(current(instant(now), false)), version: 2, state: Deleted, at: instant(now)},
		{name: "destroyed after it was deleted", metadata: of(current(past, true)), version: 2, state: Destroyed},
		{name: "never written", metadata: of(func(m *metadata) { m.CurrentVersion = 0 }), state: Gone},
		{name: "a version that is not among the versions", metadata: of(func(m *metadata) { m.CurrentVersion = 3 }), bad: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			version, state, at, ok := test.metadata.state(now)
			if ok == test.bad {
				t.Fatalf("%v", ok)
			}
			if !test.bad && (version != test.version || state != test.state || !at.Equal(time.Time(test.at))) {
				t.Errorf("version %d is %v at %v, want version %d %v at %v", version, state, at, test.version, test.state, time.Time(test.at))
			}
		})
	}
}

func TestATimeThatNoClockShowsIsNone(t *testing.T) {
	for text, want := range map[string]bool{
		`"2026-11-20T12:00:00.5+01:00"`: true, `"1970-01-01T00:00:00Z"`: true, `"2199-12-31T23:59:59Z"`: true,
		`"1969-12-31T23:59:59Z"`: false, `"1970-01-01T00:00:00+00:01"`: false, `"1600-01-01T00:00:00Z"`: false, `"0001-01-01T00:00:00Z"`: false,
		`"0000-01-01T00:00:00+23:59"`: false, `"2200-01-01T00:00:00Z"`: false, `"9999-12-31T23:59:59-23:59"`: false,
		`"hmac-sha256:0"`: false, `7`: false, `null`: false,
	} {
		var got instant
		if err := got.UnmarshalJSON([]byte(text)); err != nil || time.Time(got).IsZero() == want {
			t.Errorf("%s: %v, %v", text, time.Time(got), err)
		}
	}
}
