package events

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestACauseSaysWhatIsKnownOfIt(t *testing.T) {
	const rotation = "bao/root/secret/shop/db/7"
	for _, test := range []struct {
		name  string
		cause Cause
		want  string
	}{
		{"who wrote it, and for what", Cause{Source: "externalsecret/db", Event: rotation}, "by externalsecret/db for " + rotation},
		{"who wrote it", Cause{Source: "certificate/web", Earlier: rotation}, "by certificate/web"},
		{"for what", Cause{Event: rotation}, "for " + rotation},
		{"nothing", Cause{Earlier: rotation}, ""},
	} {
		t.Run(test.name, func(t *testing.T) { testkit.WantEqual(t, "text", test.want, test.cause.String()) })
	}
}

// Another program computed these. With other buckets, what was published of them would be of other keys.
func TestTheBucketOfAKeyIsWhatItAlwaysWas(t *testing.T) {
	for key, want := range map[string]string{"password": "5e", "user": "04", "redirect.9999": "31"} {
		if got := Bucket(key); got != want {
			t.Errorf("%s is in bucket %s, want %s", key, got, want)
		}
	}
}

func TestWhatAChangeSaysOfAKey(t *testing.T) {
	counted, truncated := change(), change()
	counted.Truncated, counted.Buckets = true, map[string]Key{Bucket("zone"): {Fingerprint: sum("6"), ChangedAt: "4500"}}
	truncated.Keys, truncated.Truncated = nil, true
	for _, tt := range []struct {
		name   string
		of     Change
		key    string
		want   Key
		listed bool
	}{
		{"it is listed", counted, "user", Key{Fingerprint: sum("4")}, true},
		{"it was removed, and is listed for that", counted, "old", Key{ChangedAt: "4000"}, true},
		{"it counts in its bucket", counted, "zone", Key{Fingerprint: sum("6"), ChangedAt: "4500"}, false},
		{"its bucket is empty", counted, "password2", Key{}, false},
		{"it counts with all others", truncated, "zone", Key{Fingerprint: sum("2"), ChangedAt: "4711"}, false},
		{"there is no such key", change(), "zone", Key{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, listed := tt.of.Key(tt.key)
			if got != tt.want || listed != tt.listed {
				t.Errorf("got %+v, listed: %t; want %+v, %t", got, listed, tt.want, tt.listed)
			}
		})
	}
}
