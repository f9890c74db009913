package externalsecret

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

const (
	vaultSecret = "{vault: {server: 'https://bao:8200', path: secret}}"
	vaultNoPath = "{vault: {server: 'https://bao:8200'}}"
	vaultV1     = "{vault: {server: 'https://bao:8200', path: secret, version: v1}}"
	openBao     = "{openBao: {server: 'https://bao:8200', path: secret}}"
)

// keyed returns an ExternalSecret with one entry of data.
func keyed(key string) string {
	return "{secretStoreRef: {name: bao}, data: [{secretKey: k, remoteRef: {key: '" + key + "'}}]}"
}

var shopDB = events.StorePath{Mount: "secret", Path: "shop/db"}

func unversioned(c *events.Change) { c.Store.Version, c.Store.Revision = 0, "request" }

func TestAPathIsFoundInAnExternalSecret(t *testing.T) {
	within := func(namespace string) events.StorePath {
		return events.StorePath{Namespace: namespace, Mount: "secret", Path: "shop/db"}
	}
	for _, test := range []struct {
		name, provider, spec string
		path                 events.StorePath
		mutate               func(*events.Change)
		want                 bool
	}{
		{name: "by its key", provider: vaultSecret, spec: keyed("shop/db"), path: shopDB, want: true},
		{name: "by the key with the mount in front", provider: vaultSecret, spec: keyed("secret/shop/db"), path: shopDB, want: true},
		{name: "by the key as the API has it", provider: vaultSecret, spec: keyed("secret/data/shop/db"), path: shopDB, want: true},
		{name: "by a path that begins like the mount", provider: vaultSecret, spec: keyed("secret/shop/db"), path: events.StorePath{Mount: "secret", Path: "secret/shop/db"}},
		{name: "in a mount with a slash in it", provider: "{vault: {server: 'https://bao:8200', path: team/kv}}", spec: keyed("shop/db"), path: events.StorePath{Mount: "team/kv", Path: "shop/db"}, want: true},
		{name: "without a mount in the store", provider: vaultNoPath, spec: keyed("secret/shop/db"), path: shopDB, want: true},
		{name: "without one, and the mount has a slash", provider: vaultNoPath, spec: keyed("team/kv/data/shop/db"), path: events.StorePath{Mount: "team/kv", Path: "shop/db"}, want: true},
		{name: "in version 1", provider: vaultV1, spec: keyed("shop/db"), path: shopDB, mutate: unversioned, want: true},
		{name: "in version 1 of what counts versions", provider: vaultV1, spec: keyed("shop/db"), path: shopDB},
		{name: "in version 2, and nobody told a version", provider: vaultSecret, spec: keyed("shop/db"), path: shopDB, mutate: unversioned, want: true},
		{name: "by the provider openBao", provider: openBao, spec: keyed("shop/db"), path: shopDB, want: true},
		{name: "by the provider openBao, which strips nothing", provider: openBao, spec: keyed("secret/shop/db"), path: shopDB},
		{name: "by the provider openBao at its default mount", provider: "{openBao: {server: 'https://bao:8200'}}", spec: keyed("shop/db"), path: events.StorePath{Mount: "kv", Path: "shop/db"}, want: true},
		{name: "in its namespace", provider: "{vault: {server: 'https://bao:8200', path: secret, namespace: /team-a/}}", spec: keyed("shop/db"), path: within("team-a"), want: true},
		{name: "in a namespace that stands in the mount", provider: "{vault: {server: 'https://bao:8200', path: team-a/secret}}", spec: keyed("shop/db"), path: within("team-a"), want: true},
		{name: "in the root where a namespace is meant", provider: "{vault: {server: 'https://bao:8200', path: secret, namespace: team-a}}", spec: keyed("shop/db"), path: shopDB},
		{name: "at another address", provider: "{vault: {server: 'https://bao2:8200', path: secret}}", spec: keyed("shop/db"), path: shopDB},
		{name: "at an alias", provider: "{vault: {server: 'https://bao.example', path: secret}}", spec: keyed("shop/db"), path: shopDB, mutate: func(c *events.Change) { c.Store.Servers = append(c.Store.Servers, "https://bao.example:443") }, want: true},
		{name: "in a store of another kind", provider: "{aws: {service: SecretsManager, region: eu}}", spec: keyed("shop/db"), path: shopDB},
		{name: "in an extract", provider: vaultSecret, spec: "{secretStoreRef: {name: bao}, dataFrom: [{extract: {key: shop/db}}]}", path: shopDB, want: true},
		{name: "in a ClusterSecretStore", provider: vaultSecret, spec: "{secretStoreRef: {name: bao, kind: ClusterSecretStore}, dataFrom: [{extract: {key: shop/db}}]}", path: shopDB, want: true},
		{name: "in a store of the entry's own", provider: vaultSecret, spec: "{secretStoreRef: {name: other}, data: [{remoteRef: {key: shop/db}, sourceRef: {storeRef: {name: bao, kind: ClusterSecretStore}}}]}", path: shopDB, want: true},
		{name: "in another store of the entry's own", provider: vaultSecret, spec: "{secretStoreRef: {name: bao}, data: [{remoteRef: {key: shop/db}, sourceRef: {storeRef: {name: other}}}]}", path: shopDB},
		{name: "by its metadata", provider: vaultSecret, spec: "{secretStoreRef: {name: bao}, data: [{remoteRef: {key: shop/db, metadataPolicy: Fetch}}]}", path: shopDB, want: true},
		{name: "as the credentials of a static role", provider: "{vault: {server: 'https://bao:8200', path: database, version: v1}}", spec: keyed("static-creds/app"), path: events.StorePath{Mount: "database", Path: "static-creds/app"}, mutate: func(c *events.Change) { unversioned(c); c.Store.Engine = events.EngineDatabase }, want: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			es := externalSecretOf(t, test.spec)
			if len(es.Problems) > 0 {
				t.Fatal(es.Problems)
			}
			if got := reads(t, es, storesOf(t, test.provider), rotated(test.path, test.mutate)); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestASecretIsFoundByASearch(t *testing.T) {
	search := func(find string) string { return "{secretStoreRef: {name: bao}, dataFrom: [{find: " + find + "}]}" }
	for _, test := range []struct {
		name, provider, find string
		path                 events.StorePath
		mutate               func(*events.Change)
		want                 bool
	}{
		{name: "by a part of its name", provider: vaultSecret, find: "{name: {regexp: 'p/d'}}", path: shopDB, want: true},
		{name: "by its name below a path, with the path in it", provider: vaultSecret, find: "{path: shop, name: {regexp: '^shop/db$'}}", path: shopDB, want: true},
		{name: "at any depth", provider: vaultSecret, find: "{path: shop, name: {regexp: 'db'}}", path: events.StorePath{Mount: "secret", Path: "shop/eu/west/db"}, want: true},
		{name: "not outside of the path", provider: vaultSecret, find: "{path: shop, name: {regexp: 'db'}}", path: events.StorePath{Mount: "secret", Path: "shopping/db"}},
		{name: "not by the path itself", provider: vaultSecret, find: "{path: shop/db, name: {regexp: '.*'}}", path: shopDB},
		{name: "by its tags, which nobody knows here", provider: vaultSecret, find: "{path: shop, tags: {team: a}}", path: shopDB, want: true},
		{name: "without a mount in the store, by a path as the API has it", provider: vaultNoPath, find: "{path: secret/data/shop, name: {regexp: '^secret/data/shop/db$'}}", path: shopDB, want: true},
		{name: "not without any mount, which the operator refuses", provider: vaultNoPath, find: "{path: secret/shop, name: {regexp: '.*'}}", path: shopDB},
		{name: "in version 1", provider: vaultV1, find: "{path: shop, name: {regexp: 'db'}}", path: shopDB, mutate: unversioned, want: true},
		{name: "by openBao, by its bare name", provider: openBao, find: "{path: shop, name: {regexp: '^db$'}}", path: shopDB, want: true},
		{name: "by openBao, not any deeper", provider: openBao, find: "{name: {regexp: 'db'}}", path: shopDB},
	} {
		t.Run(test.name, func(t *testing.T) {
			es := externalSecretOf(t, search(test.find))
			if got := reads(t, es, storesOf(t, test.provider), rotated(test.path, test.mutate)); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestABadExpressionIsReportedAndTheRestCounts(t *testing.T) {
	es := externalSecretOf(t, "{secretStoreRef: {name: bao}, dataFrom: [{find: {name: {regexp: '(['}}}, {extract: {key: shop/db}}]}")
	if len(es.Problems) != 1 {
		t.Errorf("problems: %v, want one", es.Problems)
	}
	stores := storesOf(t, vaultSecret)
	if !reads(t, es, stores, rotated(shopDB, nil)) {
		t.Error("the other entry does not count")
	}
	if reads(t, es, stores, rotated(events.StorePath{Mount: "secret", Path: "other"}, nil)) {
		t.Error("the bad expression matches")
	}
}

func TestAnExpressionThatIsTooLargeFindsAnyName(t *testing.T) {
	for _, test := range []struct {
		name        string
		expressions []string
		kept        int // how many are compiled
	}{
		{name: "one that is large in memory", expressions: []string{"(?:" + strings.Repeat("x", 3300) + "){1000}"}},
		{name: "many that are large together", expressions: slices.Repeat([]string{"x{100}"}, 100), kept: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			var entries []string
			for _, text := range test.expressions {
				entries = append(entries, "{find: {name: {regexp: '"+text+"'}}}")
			}
			es := externalSecretOf(t, "{secretStoreRef: {name: bao}, dataFrom: ["+strings.Join(entries, ", ")+"]}")
			if !reads(t, es, storesOf(t, vaultSecret), rotated(shopDB, nil)) {
				t.Error("it does not find the secret")
			}
			kept := 0
			for i := range es.references {
				if es.references[i].find.name != nil {
					kept++
				}
			}
			if kept > test.kept || len(es.Problems) != len(test.expressions)-kept {
				t.Errorf("%d were compiled, want %d at most; %d problems", kept, test.kept, len(es.Problems))
			}
			for _, problem := range es.Problems {
				if text := problem.Error(); len(text) > 100 {
					t.Errorf("a problem has %d bytes: %.100s", len(text), text)
				}
			}
		})
	}
}

func TestAPinnedVersionStaysAsItIs(t *testing.T) {
	as := func(verb events.Verb, operation string, version int64) func(*events.Change) {
		return func(c *events.Change) { c.Verb, c.Store.Operation, c.Store.Version = verb, operation, version }
	}
	tests := []struct {
		name   string
		mutate func(*events.Change)
		want   bool
	}{
		{name: "when another is written", mutate: as(events.VerbRotated, "update", 4)},
		{name: "but not when it is written", mutate: as(events.VerbRotated, "create", 3), want: true},
		{name: "but not when one is deleted", mutate: as(events.VerbDeleted, "delete", 4), want: true},
		{name: "but not when one is undeleted", mutate: as(events.VerbRotated, "undelete", 4), want: true},
	}
	es := externalSecretOf(t, "{secretStoreRef: {name: bao}, data: [{remoteRef: {key: shop/db, version: '3'}}]}")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := reads(t, es, storesOf(t, vaultSecret), rotated(shopDB, test.mutate)); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestThePlacesAreWhatAPollerHasToPoll(t *testing.T) {
	es := externalSecretOf(t, `{secretStoreRef: {name: bao}, data: [{remoteRef: {key: secret/data/shop/db}}],
		dataFrom: [{find: {path: /shop/, tags: {a: b}}}, {find: {name: {regexp: x}}}, {extract: {key: a, version: "2"}},
		{extract: {key: b}, sourceRef: {storeRef: {name: unknown}}}, {sourceRef: {generatorRef: {kind: Password, name: p}}}]}`)
	at := func(path string, below bool) Place {
		return Place{Server: "https://bao:8200", Path: events.StorePath{Namespace: "team/a", Mount: "secret", Path: path}, Key: Key{Below: below}}
	}
	want := []Place{at("shop/db", false), at("shop", true), at("", true), at("a", false)}
	got := es.Places(storesOf(t, "{vault: {server: 'https://bao:8200/', path: secret, namespace: team/a}}"))
	testkit.WantEqual(t, "places", want, got, cmpopts.IgnoreUnexported(Place{}, Key{}))
	names := []types.NamespacedName{{Namespace: "shop", Name: "bao"}, {Namespace: "shop", Name: "unknown"}}
	testkit.WantEqual(t, "stores", names, es.Stores())
}
