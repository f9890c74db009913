package kinds

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// numbered returns a content with keys like "key-0007", from first to the one before end.
func numbered(name string, first, end int) content {
	data := make(content)
	for i := first; i < end; i++ {
		data[fmt.Sprintf("%s%04d", name, i)] = "x"
	}
	return data
}

// and returns the content with other keys.
func (c content) and(other content) content {
	all := maps.Clone(c)
	maps.Copy(all, other)
	return all
}

// without returns the content without a key.
func (c content) without(name string) content {
	rest := maps.Clone(c)
	delete(rest, name)
	return rest
}

// wantKey wants the last event to say that a key changed at a version, and whether it lists the key.
func (c *chain) wantKey(name, changedAt string, listed bool) {
	c.t.Helper()
	key, isListed := c.change.Key(name)
	if key.ChangedAt != changedAt || isListed != listed {
		c.t.Errorf("at %s: %s has changed at %q, listed: %t; want %q, %t", c.change.ResourceVersion, name, key.ChangedAt, isListed, changedAt, listed)
	}
}

func TestCompareObjectsWithTooManyKeys(t *testing.T) {
	ring := keyringOf(1)
	for _, tt := range []struct {
		name string
		data content
	}{
		{"too many keys", numbered("key-", 0, events.MaxKeys+1)},
		{"names that are too long", numbered(strings.Repeat("x", 246), 0, events.MaxKeyNames/250+1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := chain{t: t}
			c.see(objectOf(ring, "u", 5, content{"a": "1"}), false)
			c.see(objectOf(ring, "u", 6, tt.data), false)
			listed, size := 0, 0
			for name := range tt.data {
				key, isListed := c.change.Key(name)
				if key.Fingerprint == "" || key.ChangedAt != "6" {
					t.Fatalf("of a key that is there the event says %+v", key)
				}
				if isListed {
					listed, size = listed+1, size+len(name)
				}
			}
			if !c.change.Truncated || listed < len(tt.data)-2 || listed > events.MaxKeys || size > events.MaxKeyNames {
				t.Errorf("%d keys listed of %d, with names of %d bytes, truncated %t", listed, len(tt.data), size, c.change.Truncated)
			}
			if got := c.see(objectOf(ring, "u", 7, tt.data), false); got != nothing {
				t.Errorf("the same content again is %s", got)
			}
			c.see(objectOf(ring, "u", 8, tt.data.and(content{"another": "1"})), false)
			if c.change.ChangedAt != "8" {
				t.Errorf("after a change the content has changed at %q, want 8", c.change.ChangedAt)
			}
		})
	}
}

// Pods read one key of a ConfigMap with redirects, which others change.
func TestAKeyOfManyHasNotChangedIfOthersHave(t *testing.T) {
	ring := keyringOf(1)
	for _, tt := range []struct {
		name      string
		redirects int
		key       string
		listed    bool
	}{
		{"one of 1,201 that is listed", 1200, "log.level", true},
		{"one of 1,201 that is not", 1200, "redirect.1199", false},
		{"one of 1,000, all of which are listed until there is one more", 999, "log.level", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := chain{t: t}
			data := numbered("redirect.", 0, tt.redirects).and(content{"log.level": "info"})
			c.see(objectOf(ring, "u", 5, data), false)
			c.wantKey(tt.key, "", tt.listed)
			data = data.and(content{"redirect.0007": "/elsewhere"})
			c.see(objectOf(ring, "u", 6, data), false)
			c.wantKey(tt.key, "", tt.listed)
			c.wantKey("redirect.0007", "6", true)
			data = data.and(content{"redirect.9999": "/one-more"})
			c.see(objectOf(ring, "u", 7, data), false)
			c.wantKey(tt.key, "", tt.listed)
			c.wantKey("redirect.9999", "7", false)
			c.see(objectOf(ring, "u", 8, data.and(content{tt.key: "debug"})), false)
			c.wantKey(tt.key, "8", tt.listed)
			c.wantKey("redirect.0007", "6", true)
		})
	}
}

// "key-1676" is in one bucket with "key-1500", and "key-1600" is not.
func TestAKeyThatIsNotListedChangesWithItsBucket(t *testing.T) {
	ring, c := keyringOf(1), chain{t: t}
	data := numbered("key-", 0, 2000)
	c.see(objectOf(ring, "u", 5, data), false)
	c.see(objectOf(ring, "u", 6, data.and(content{"key-1500": "y"})), false)
	if len(c.change.Changed) > 0 {
		t.Errorf("the event names %v, which it does not list", c.change.Changed)
	}
	c.wantKey("key-1500", "6", false)
	c.wantKey("key-1676", "6", false)
	c.wantKey("key-1600", "", false)
	c.see(objectOf(ring, "u", 7, data.and(content{"key-1500": "y"}).without("key-1676")), false)
	c.wantKey("key-1676", "7", false)
	c.see(nil, false)
	c.wantKey("key-1676", "7", false)
}

func TestANewKeyPushesNoneOutOfTheList(t *testing.T) {
	ring, c := keyringOf(1), chain{t: t}
	data := numbered("key-", 0, events.MaxKeys)
	c.see(objectOf(ring, "u", 5, data), false)
	c.see(objectOf(ring, "u", 6, data.and(content{"a-new": "x"})), false)
	for name := range data {
		c.wantKey(name, "", true)
	}
	c.wantKey("a-new", "6", false)
	c.see(objectOf(ring, "u", 7, data), false)
	if c.change.Truncated || len(c.change.Keys) != events.MaxKeys {
		t.Errorf("back at the limit, %d keys are listed, truncated %t", len(c.change.Keys), c.change.Truncated)
	}
	c.wantKey("a-new", "7", false) // It may have been there.
}

func TestAKeyThatIsRemovedAndBackHasItsFingerprintAgain(t *testing.T) {
	ring, c := keyringOf(1), chain{t: t}
	data := numbered("key-", 0, 1100)
	c.see(objectOf(ring, "u", 5, data), false)
	before, _ := c.change.Key("key-0500")
	c.see(objectOf(ring, "u", 6, data.without("key-0500")), false)
	if now, listed := c.change.Key("key-0500"); !listed || now.Fingerprint != "" {
		t.Errorf("when it is removed, it has the fingerprint %q, listed: %t", now.Fingerprint, listed)
	}
	c.wantKey("key-1000", "", false)
	c.see(objectOf(ring, "u", 7, data), false)
	c.wantKey("key-0500", "7", true)
	if now, _ := c.change.Key("key-0500"); now.Fingerprint != before.Fingerprint {
		t.Errorf("when it is back, it has the fingerprint %s, want %s", now.Fingerprint, before.Fingerprint)
	}
	c.wantKey("key-1000", "", false)
}

// Those that were listed are gone, and one of the others.
func TestASourceThatShrinksBelowTheLimitListsAllOfItsKeys(t *testing.T) {
	ring, c := keyringOf(1), chain{t: t}
	c.see(objectOf(ring, "u", 5, numbered("key-", 0, 2000)), false)
	data := numbered("key-", 1000, 2000).and(content{"key-0003": "x"}).without("key-1500")
	c.see(objectOf(ring, "u", 6, data), false)
	if c.change.Truncated {
		t.Error("it is truncated")
	}
	c.wantKey("key-0003", "", true)
	c.wantKey("key-0004", "6", true) // It is gone.
	c.wantKey("key-1600", "", true)
	c.wantKey("key-1676", "6", true)
	c.wantKey("key-1500", "6", false)
	if gone, _ := c.change.Key("key-1500"); gone.Fingerprint != "" {
		t.Errorf("a key that is gone has the fingerprint %q", gone.Fingerprint)
	}
	c.see(objectOf(ring, "u", 7, data.and(content{"key-0003": "y"})), false)
	c.wantKey("key-1600", "", true)
	c.wantKey("key-1500", "6", false)
}

// Names of files may have a hash in them.
func TestAnEventIsNotTooLargeIfAllKeysAreReplaced(t *testing.T) {
	ring, c := keyringOf(1), chain{t: t}
	before, after := numbered(strings.Repeat("a", 120), 0, events.MaxKeys), numbered(strings.Repeat("b", 120), 0, events.MaxKeys)
	c.see(objectOf(ring, "u", 5, before), false)
	c.see(objectOf(ring, "u", 6, after), false)
	for name := range before {
		if key, _ := c.change.Key(name); key.Fingerprint != "" || key.ChangedAt != "6" {
			t.Fatalf("of a key that is gone the event says %+v", key)
		}
	}
	c.change.Cluster, c.change.Time = "demo", epoch
	encoded, err := c.change.Encode()
	testkit.Must(t, err)
	if _, _, err := encoded.Message(); err != nil {
		t.Error(err)
	}
	if got := c.see(objectOf(ring, "u", 7, after), false); got != nothing {
		t.Errorf("the same content again is %s", got)
	}
}

// Pods that need a key may have waited for it.
func TestAKeyIsAddedOnlyIfTheSourceCannotHaveHadIt(t *testing.T) {
	ring, c := keyringOf(1), chain{t: t}
	wantAdded := func(name string, want bool) {
		t.Helper()
		if key := c.before.Change("", testSource).Keys[name]; key.Fingerprint == "" || key.Added != want {
			t.Errorf("at %s: %s is there, and is added: %t; want %t", c.change.ResourceVersion, name, key.Added, want)
		}
	}
	data := numbered("key-", 0, events.MaxKeys-1)
	c.see(objectOf(ring, "u", 5, data), false)
	data = data.and(content{"a-new": "x"}).and(numbered("other-", 0, 100))
	c.see(objectOf(ring, "u", 6, data), false) // It has more than the event lists.
	wantAdded("a-new", true)
	few := numbered("key-", 0, 500)
	c.see(objectOf(ring, "u", 7, few), false)
	unknown := "new-0"
	for i := 1; c.change.Buckets[events.Bucket(unknown)].ChangedAt != ""; i++ {
		unknown = fmt.Sprintf("new-%d", i)
	}
	c.see(objectOf(ring, "u", 8, few.and(content{"other-0050": "y", unknown: "y"})), false)
	wantAdded("other-0050", false)
	wantAdded(unknown, true)
}

func TestBucketsAreComparedUnderTheKeyOfTheLastEvent(t *testing.T) {
	c := chain{t: t}
	data := numbered("key-", 0, 1100)
	c.see(objectOf(keyringOf(1), "u", 5, data), false)
	both := keyringOf(2, 1)
	if got := c.see(objectOf(both, "u", 6, data), false); got != nothing {
		t.Errorf("with another key the same content is %s", got)
	}
	c.see(objectOf(both, "u", 7, data.and(content{"key-1050": "y"})), false)
	c.wantKey("key-1050", "7", false)
	c.wantKey("key-1007", "", false)
	c.see(objectOf(keyringOf(2), "u", 8, data.and(content{"key-1050": "z"})), false)
	c.wantKey("key-1050", "8", false)
	c.wantKey("key-1007", "", false)
}

func TestTwoWatchersListTheSameKeys(t *testing.T) {
	ring := keyringOf(1)
	var seen [2]events.Change
	for i := range seen {
		c := chain{t: t}
		c.see(objectOf(ring, "u", 5, numbered("key-", 0, 990)), false)
		c.see(objectOf(ring, "u", 6, numbered("key-", 5, 1100).and(numbered("new-", 0, 50))), false)
		seen[i] = c.change
	}
	testkit.WantEqual(t, "events", seen[0], seen[1])
}
