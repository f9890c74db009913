package events

import (
	"slices"
	"testing"
)

func TestSelfLinksOfSources(t *testing.T) {
	for want, source := range map[string]Source{
		"openbao://bao/secret/shop/db":                                   StorePath{"bao", RootNamespace, "secret", "shop/db"}.Source(),
		"openbao://bao/kv/prod/shop/db.v2%2050%25?namespace=team-a%2Feu": storePath.Source(),
		"openbao://bao/secret/a%3Fb%23c":                                 StorePath{"bao", RootNamespace, "secret", "a?b#c"}.Source(),
	} {
		if got := source.selfLink(); got != want {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
}

func TestOnlyASecretInAStoreIsLookedForUnderTheNamesOfOtherClusters(t *testing.T) {
	origins := Origins{Cluster: "demo", StoresFrom: []string{"hub"}}
	for _, tt := range []struct {
		name      string
		got, want []string
	}{
		{"clusters of a secret in a store", origins.clusters(KindOpenBao), []string{"demo", "hub"}},
		{"clusters of a Secret", origins.clusters(KindSecret), []string{"demo"}},
		{"filters of secrets in stores", origins.Filters(KindOpenBao, "shop"), []string{KindFilter("demo", KindOpenBao), KindFilter("hub", KindOpenBao)}},
		{"filters of Secrets", origins.Filters(KindSecret, "shop"), []string{"keyturn.v1.demo.secret.shop.>"}},
	} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}
