package workload

import (
	"cmp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

const grants = `
grants:
- namespaces: [shop, team-*]
  store: bao
  paths: [secret/shop, kv/mail]
- namespaces: [ops]
  store: "*"
  paths: ["*"]
`

func TestANamespaceRollsOnNoOtherSecretsInStoresThanItMayName(t *testing.T) {
	const notGranted = "this namespace may not name it"
	agent := func(path string) map[string]string {
		return map[string]string{"vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/agent-inject-secret-a": path}
	}
	tests := []struct {
		name, namespace, rollOn string
		template                map[string]string
		// store and path are of the secret that changes.
		store, path string
		want        bool
		problem     string
	}{
		{name: "a path below one that is granted", namespace: "shop", rollOn: "openbao:secret/shop/db", path: "secret/shop/db", want: true},
		{name: "as the API has it", namespace: "shop", rollOn: "openbao:secret/data/shop/db", path: "secret/shop/db", want: true},
		{name: "everything, but no more than that", namespace: "shop", rollOn: "openbao:*", path: "secret/bank/db"},
		{name: "everything in every store", namespace: "ops", rollOn: "openbao:*", store: "dev", path: "secret/bank/db", want: true},
		{name: "a path of the same beginning", namespace: "shop", rollOn: "openbao:secret/shopping", path: "secret/shopping", problem: notGranted},
		{name: "the path in another store", namespace: "shop", rollOn: "openbao:secret/shop/db", store: "dev", path: "secret/shop/db"},
		{name: "another store by name", namespace: "shop", rollOn: "openbao:dev:secret/shop/db", store: "dev", path: "secret/shop/db", problem: notGranted},
		{name: "another namespace", namespace: "bank", rollOn: "openbao:secret/shop/db", path: "secret/shop/db", problem: notGranted},
		{name: "what the pods are seen to read", namespace: "bank", rollOn: "openbao:secret/bank/db", template: agent("secret/data/bank/db"), path: "secret/bank/db", want: true},
	}
	access, err := parseStoreAccess([]byte(grants))
	testkit.Must(t, err)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: tt.namespace, Name: "web", Annotations: rollOn(tt.rollOn)}}
			deployment.Spec.Template.Annotations = tt.template
			w, _ := Read(deployments, deployment, Reading{Stores: access})
			mount, path, _ := strings.Cut(tt.path, "/")
			source := events.StorePath{Store: cmp.Or(tt.store, "bao"), Namespace: events.RootNamespace, Mount: mount, Path: path}.Source()
			if got := w.OptIn.Wants(source, w.Reference(source), false).Wanted(); got != tt.want {
				t.Errorf("it rolls on the secret: %t, want %t", got, tt.want)
			}
			switch {
			case tt.problem == "" && len(w.Problems) > 0:
				t.Errorf("problems %v", w.Problems)
			case tt.problem != "" && (len(w.Problems) != 1 || !strings.Contains(w.Problems[0].Error(), tt.problem)):
				t.Errorf("problems %v, want one: %s", w.Problems, tt.problem)
			}
			if tt.problem != "" && (len(w.Sources()) > 0 || w.OptIn.HasPatterns(events.KindOpenBao)) {
				t.Error("events about what it may not name are looked up for it")
			}
		})
	}
}

func TestTheFileOfStoreAccessIsChecked(t *testing.T) {
	tests := []struct{ name, content, want string }{
		{"it is read", grants, ""},
		{"no field is unknown", "grants: [{namespace: shop}]", "--store-access: namespace: unknown field"},
		{
			"names are names, and paths are paths", "grants: [{namespaces: [Shop], store: a/b, paths: [kv/*, /kv]}]",
			`--store-access: grants[0].namespaces[0]: "Shop", want the name of a namespace or a pattern such as team-*` + "\n" +
				`--store-access: grants[0].store: "a/b", want the name of a store, or * for every store` + "\n" +
				`--store-access: grants[0].paths[0]: "kv/*", want a path without slashes around it and without patterns, such as kv/shop, or *` + "\n" +
				`--store-access: grants[0].paths[1]: "/kv", want a path without slashes around it and without patterns, such as kv/shop, or *`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseStoreAccess([]byte(tt.content))
			testkit.WantError(t, err, tt.want)
		})
	}
}
