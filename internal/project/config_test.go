package project

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

const widgets = `projections:
  - apiVersion: example.org/v1
    kind: Widget
    resource: widgets
    paths: [spec.auth.password]
    secrets: [{namespace: shop, name: db, keys: [password]}, {namespace: shop, name: other, keys: [a]}, {namespace: test, name: db, keys: [b]}]
`

func TestTheConfigurationSaysWhatIsGiven(t *testing.T) {
	kinds, err := parseConfig([]byte(widgets))
	if err != nil || len(kinds) != 1 {
		t.Fatalf("got %d kinds, %v", len(kinds), err)
	}
	k := kinds[0]
	if diff := cmp.Diff([]string{"shop", "test"}, k.namespaces()); diff != "" || k.name != "widget" || k.resource.String() != "example.org/v1, Resource=widgets" {
		t.Errorf("got %s, %s; namespaces (-want +got):\n%s", k.name, k.resource, diff)
	}
	for _, tt := range []struct{ name, namespace, text, want string }{
		{"what is given", "shop", "spec.auth.password=secret/db/password", ""},
		{"written in another way", "shop", "spec['auth'].password=secret/db/password", ""},
		{"another field", "shop", "spec.auth.user=secret/db/password", "The field spec.auth.user of a Widget may not be written."},
		{"a field in that", "shop", "spec.auth.password.a=secret/db/password", "The field spec.auth.password.a of a Widget may not be written."},
		{"another Secret", "shop", "spec.auth.password=secret/none/password", "secret/none is not given to a Widget."},
		{"a Secret of another namespace", "test", "spec.auth.password=secret/other/a", "secret/other is not given to a Widget."},
		{"a key of the Secret of another namespace", "test", "spec.auth.password=secret/db/password", "The key password of secret/db is not given to a Widget."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wishes, err := parseWishes(tt.text)
			testkit.Must(t, err)
			if got := k.refusal(tt.namespace, wishes); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAConfigurationIsRefused(t *testing.T) {
	const at = "--projections-config: projections[0]."
	for _, tt := range []struct{ name, old, new, want string }{
		{"a built-in kind", "example.org/v1", "apps/v1", at + `apiVersion: "apps/v1", want the group and the version of a custom resource, such as example.org/v1`},
		{"a kind of Kubernetes", "example.org/v1", "networking.k8s.io/v1", at + `apiVersion: "networking.k8s.io/v1" is not of a custom resource that may have values of Secrets`},
		{"too many paths for the policy", "[spec.auth.password]", "[" + strings.Repeat("spec.a, ", 16) + "spec.b]", at + "paths: has 17, want at most 16"},
		{"a path through a list", "spec.auth.password", "'spec.auth[*]'", at + `paths[0]: "spec.auth[*]" is not a field below spec, or goes through a list`},
		{"a pattern of names", "name: other", "name: '*'", at + `secrets[1].name: "*", want the name of a Secret`},
		{"a pattern of keys", "[password]}", "['*']}", at + `secrets[0].keys[0]: "*", want the key of a Secret`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseConfig([]byte(strings.Replace(widgets, tt.old, tt.new, 1)))
			testkit.WantError(t, err, tt.want)
		})
	}
	_, err := parseConfig([]byte(widgets + strings.TrimPrefix(widgets, "projections:\n")))
	testkit.WantError(t, err, `--projections-config: projections[1].kind: "Widget" is used twice, want each kind once`)
	_, err = parseConfig([]byte("{}"))
	testkit.WantError(t, err, "--projections-config: projections: is empty, want at least one")
}
