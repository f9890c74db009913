package sources

import (
	"fmt"
	"slices"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
)

// many returns a content with the given number of keys, each with a name of size bytes.
func many(keys, size int) content {
	data := make(content, keys)
	for i := range keys {
		data[fmt.Sprintf("%0*d", size, i)] = "x"
	}
	return data
}

func TestCompareObjectsWithTooManyKeys(t *testing.T) {
	ring := keyringOf(1)
	for _, tt := range []struct {
		name      string
		data      content
		truncated bool
	}{
		{"as many keys as fit are listed", many(events.MaxKeys, 8), false},
		{"one more and none is", many(events.MaxKeys+1, 8), true},
		{"names as long as fit are listed", many(events.MaxKeyNames/250, 250), false},
		{"longer names and none is", many(events.MaxKeyNames/250+1, 250), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := chain{t: t}
			c.see(objectOf(ring, "u", 5, content{"a": "1"}), false)
			c.see(objectOf(ring, "u", 6, tt.data), false)
			listed := len(tt.data) + 1 // with the one that was removed
			if tt.truncated {
				listed = 0
			}
			if c.change.Truncated != tt.truncated || len(c.change.Keys) != listed || len(c.change.Changed) != listed {
				t.Errorf("%d keys listed, %d changed, truncated %t; want %d, %d and %t",
					len(c.change.Keys), len(c.change.Changed), c.change.Truncated, listed, listed, tt.truncated)
			}
			if got := c.see(objectOf(ring, "u", 7, tt.data), false); got != nothing {
				t.Errorf("the same content again is %s", got)
			}
			tt.data["another"] = "1"
			c.see(objectOf(ring, "u", 8, tt.data), false)
			if c.change.ChangedAt != "8" {
				t.Errorf("after a change the content has changed at %q, want 8", c.change.ChangedAt)
			}
		})
	}
	t.Run("such an object takes no more memory than any other", func(t *testing.T) {
		for _, f := range objectOf(keyringOf(2), "u", 5, many(events.MaxKeys+1, 8)).fingerprints {
			if len(f.keys) != 0 || f.all == (sum{}) {
				t.Errorf("%d fingerprints of keys are kept, want that of all alone", len(f.keys))
			}
		}
	})
	t.Run("such an object of a certificate has changed, whatever has changed in it", func(t *testing.T) {
		c := chain{t: t}
		for version, value := range []string{"1", "2"} {
			now := objectOf(ring, "u", 5+version, content{"a": value})
			now.fingerprints = ring.fingerprint(testSource, many(events.MaxKeys+1+version, 8).data())
			now.derived = true
			c.see(now, false)
		}
		if c.change.ChangedAt != "6" {
			t.Errorf("got %+v, want a change at 6", c.change)
		}
	})
	t.Run("after such an object every key that is listed has changed", func(t *testing.T) {
		c := chain{t: t}
		c.see(objectOf(ring, "u", 5, many(events.MaxKeys+1, 8)), false)
		if got, want := c.see(objectOf(ring, "u", 6, content{"a": "1", "b": "2"}), false), "changed u/6@6 {a@6 b@6} [a b] previous"; got != want {
			t.Errorf("event %s\n want %s", got, want)
		}
	})
	t.Run("such an object is deleted and is there again like any other", func(t *testing.T) {
		c := chain{t: t}
		c.see(objectOf(ring, "u", 5, many(events.MaxKeys+1, 8)), false)
		c.see(objectOf(ring, "u", 6, many(events.MaxKeys+2, 8)), false)
		if got, want := c.see(nil, false), "deleted u/6@6 {} [] truncated"; got != want {
			t.Errorf("event %s\n want %s", got, want)
		}
		if got, want := c.see(objectOf(ring, "v", 9, many(events.MaxKeys+2, 8)), true), "observed v/9@6 {} [] truncated previous"; got != want {
			t.Errorf("event %s\n want %s", got, want)
		}
	})
}

func TestCompareForgetsTheKeysThatWentFirst(t *testing.T) {
	ring := keyringOf(1)
	c := chain{t: t}
	version := 95 // so that the resourceVersions get longer on the way
	c.see(objectOf(ring, "u", version, content{"stays": "1", "day-000": "x"}), false)
	for day := range maxGone + 10 {
		version++
		c.see(objectOf(ring, "u", version, content{"stays": "1", fmt.Sprintf("day-%03d", day+1): "x"}), false)
	}
	var gone, want []string
	for name, k := range c.change.Keys {
		if k.Fingerprint == "" {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	// The event that removes a key always says so.
	for day := 9; day <= maxGone+9; day++ {
		want = append(want, fmt.Sprintf("day-%03d", day))
	}
	wantEqual(t, "removed keys that are remembered", want, gone)
	if k := c.change.Keys["stays"]; k.ChangedAt != "" {
		t.Errorf("a key that never changed has changed at %s", k.ChangedAt)
	}
}
