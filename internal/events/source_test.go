package events

import "testing"

func TestSelfLinksOfSources(t *testing.T) {
	tests := map[string]Source{
		"/api/v1/namespaces/shop/configmaps/db":                           {KindConfigMap, "shop", "db"},
		"/api/v1/namespaces/shop/secrets/db":                              {KindSecret, "shop", "db"},
		"/apis/external-secrets.io/v1/namespaces/shop/externalsecrets/db": {KindExternalSecret, "shop", "db"},
		"/apis/cert-manager.io/v1/namespaces/shop/certificates/web":       {KindCertificate, "shop", "web"},
		"openbao://bao/secret/shop/db":                                    StorePath{"bao", RootNamespace, "secret", "shop/db"}.Source(),
		"openbao://bao/kv/prod/shop/db.v2%2050%25?namespace=team-a%2Feu":  storePath.Source(),
		"openbao://bao/secret/a%3Fb%23c":                                  StorePath{"bao", RootNamespace, "secret", "a?b#c"}.Source(),
	}
	for want, source := range tests {
		if got := source.selfLink(); got != want {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
}
