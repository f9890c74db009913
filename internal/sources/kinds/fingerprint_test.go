package kinds

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// flat returns fingerprints as text: that of all keys under "", and each key's under its name.
func flat(p fingerprints) map[string]string {
	texts := map[string]string{"": p.all.Text(p.keyID)}
	for _, print := range p.keys {
		texts[print.name] = print.sum.Text(p.keyID)
	}
	return texts
}

// Another program computed these values from the description alone. With other values, every source would seem changed, and every workload would
// roll.
func TestFingerprintsAreWhatTheyAlwaysWere(t *testing.T) {
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = byte(i)
	}
	ring := &Keyring{keys: []ringKey{newKey(secret)}}
	for _, tt := range []struct {
		name string
		data content
		want map[string]string
	}{
		{
			name: "of two keys", data: content{"password": "hunter2", "user": "app"},
			want: map[string]string{
				"":         "k5159e3c1:2226f27589402b5ee85a1f365e5ee77e",
				"password": "k5159e3c1:4a15dfaebb6c6d49ab54c1f54123a779",
				"user":     "k5159e3c1:24eb08b034dd1a1c77d73ede3b53c064",
			},
		},
		{
			name: "of no key", data: content{},
			want: map[string]string{"": "k5159e3c1:8c9d3c0ca0a0f8133efb8321d3ef7c46"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ring.fingerprint(testSource, tt.data.data())
			testkit.WantEqual(t, "fingerprints", tt.want, flat(got[0]))
		})
	}
}

func TestFingerprintsTellContentsApart(t *testing.T) {
	ring := keyringOf(1)
	for _, pair := range [][2]content{
		{{"ab": "c"}, {"a": "bc"}},
		{{"a": "xy", "b": "z"}, {"a": "x", "b": "yz"}},
		{{"a": "1", "b": "2"}, {"a": "2", "b": "1"}},
		{{"a": "1", "b": ""}, {"a": "1"}},
	} {
		a, b := ring.fingerprint(testSource, pair[0].data())[0], ring.fingerprint(testSource, pair[1].data())[0]
		if a.all == b.all {
			t.Errorf("%v and %v have the same fingerprint", pair[0], pair[1])
		}
	}
}

func TestFingerprintsBelongToOnePlace(t *testing.T) {
	ring := keyringOf(1)
	data := content{"password": "hunter2"}.data()
	here := flat(ring.fingerprint(testSource, data)[0])
	for _, there := range []events.Source{
		{Kind: events.KindConfigMap, Namespace: "shop", Name: "db"}, {Kind: events.KindSecret, Namespace: "sho", Name: "pdb"},
	} {
		for name, text := range flat(ring.fingerprint(there, data)[0]) {
			if text == here[name] {
				t.Errorf("what is equal in two places has one fingerprint for %q: %s", name, text)
			}
		}
	}
}
