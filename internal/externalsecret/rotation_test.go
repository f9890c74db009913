package externalsecret

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
)

func TestOnlyWhatHappenedToASecretInAStoreIsARotation(t *testing.T) {
	for _, test := range []struct {
		name   string
		mutate func(*events.Change)
		want   bool
	}{
		{name: "one that was rotated", mutate: func(*events.Change) {}, want: true},
		{name: "one that was deleted", mutate: func(c *events.Change) { c.Verb = events.VerbDeleted }, want: true},
		{name: "not one that was seen for the first time", mutate: func(c *events.Change) { c.Verb = events.VerbObserved }},
		{name: "not a Secret", mutate: func(c *events.Change) { c.Source = events.Source{Kind: events.KindSecret, Namespace: "a", Name: "b"} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, got := RotationOf(rotated(shopDB, test.mutate)); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestWhatIsReadAsVersionOneIsInKVWhereARotationShowsIt(t *testing.T) {
	const v1 = "{vault: {server: 'https://bao:8200', path: secret, version: v1}}"
	in := func(mount, engine string) events.Change {
		return rotated(events.StorePath{Mount: mount, Path: "shop/db"}, func(c *events.Change) { c.Store.Engine, c.Store.Version = engine, 0 })
	}
	for _, tt := range []struct {
		name, provider string
		rotated        []events.Change
		want           bool
	}{
		{"version 2", "{vault: {server: 'https://bao:8200', path: secret}}", nil, true},
		{"version 1", v1, nil, false},
		{"version 1, of which another secret changes", v1, []events.Change{in("secret", events.EngineKV)}, true},
		{"version 1, while a role of the mount changes", v1, []events.Change{in("secret", events.EngineDatabase)}, false},
		{"version 1 of a mount in the key", "{vault: {server: 'https://bao:8200', version: v1}}", []events.Change{in("secret", events.EngineKV)}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var rotations []Rotation
			for _, change := range tt.rotated {
				rotation, _ := RotationOf(change)
				rotations = append(rotations, rotation)
			}
			es := externalSecretOf(t, "{secretStoreRef: {name: bao}, data: [{remoteRef: {key: secret/shop/mail}}]}")
			if got := es.ReadsOnlyKV(storesOf(t, tt.provider), rotations); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
	t.Run("a search", func(t *testing.T) {
		es := externalSecretOf(t, "{secretStoreRef: {name: bao}, dataFrom: [{find: {path: shop}}]}")
		if !es.ReadsOnlyKV(storesOf(t, v1), nil) {
			t.Error("only KV can be searched")
		}
	})
}
