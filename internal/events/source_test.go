package events

import "testing"

func TestSelfLinksOfSources(t *testing.T) {
	tests := map[string]Source{
		"openbao://bao/secret/shop/db":                                   StorePath{"bao", RootNamespace, "secret", "shop/db"}.Source(),
		"openbao://bao/kv/prod/shop/db.v2%2050%25?namespace=team-a%2Feu": storePath.Source(),
		"openbao://bao/secret/a%3Fb%23c":                                 StorePath{"bao", RootNamespace, "secret", "a?b#c"}.Source(),
	}
	for want, source := range tests {
		if got := source.selfLink(); got != want {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
}
