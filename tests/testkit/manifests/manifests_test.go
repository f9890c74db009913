package manifests

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
	"sigs.k8s.io/yaml"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryDocumentIsAnObject(t *testing.T) {
	for _, tt := range []struct{ name, yaml, want string }{
		{"a store", SecretStore{"shop", "bao", "http://127.0.0.1:8200", "a-token"}.YAML(), "Secret shop/store-token, SecretStore shop/bao"},
		{"an ExternalSecret", ExternalSecret{Namespace: "shop", Name: "db", Store: "bao", Path: "shop/db"}.YAML(), "ExternalSecret shop/db"},
		{"an issuer", SelfSigned("shop", "self"), "Issuer shop/self"},
		{"an issuer of the cluster", SelfSigned("", "self"), "ClusterIssuer /self"},
		{"an authority", Authority("shop", "ca", "ClusterIssuer", "self"), "Certificate shop/ca, Issuer shop/ca"},
		{
			"a certificate", Certificate{Namespace: "shop", Name: "web", Issuer: "ca", Annotations: `{a: "true"}`, Spec: "dnsNames: [x]\n  isCA: false"}.YAML(),
			"Certificate shop/web",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for document := range strings.SplitSeq(tt.yaml, "---\n") {
				var object struct {
					Kind     string
					Metadata struct{ Namespace, Name string }
				}
				if err := yaml.Unmarshal([]byte(document), &object); err != nil {
					t.Fatal(err)
				}
				got = append(got, object.Kind+" "+object.Metadata.Namespace+"/"+object.Metadata.Name)
			}
			if got := strings.Join(got, ", "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
