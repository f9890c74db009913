package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

// aProjector is a value with the projector, and with one kind that it writes.
const aProjector = "projector: {enabled: true, projections: [{apiVersion: example.org/v1, kind: Widget, resource: widgets, paths: [spec.a], " +
	"secrets: [{namespace: a, name: one, keys: [k]}]}]}"

// projecting are values with the projector and the file of the example, and others.
func projecting(t *testing.T, others string) string {
	t.Helper()
	content := testkit.ReadFile(t, "../../deploy/projections/example/projections.yaml")
	return "projector:\n  enabled: true\n  " + strings.ReplaceAll(content, "\n", "\n  ") + "\n" + others
}

func TestTheChartInstallsTheProjectorAsKustomizeDoes(t *testing.T) {
	const projector, example, both = "projector", "projections/example", "components/projector/with-audit"
	tests := []struct {
		name, values string
		base         string
		components   []string
	}{
		{"for all namespaces", "", "base", []string{projector, example}},
		{"for one", "namespaces: [team-a]", "namespaced", []string{projector, example}},
		{"with a NATS of your own", "nats: {url: nats://nats.nats.svc:4222}", "base", []string{projector, example, "external-nats"}},
		{"with the audit of a store", "openbaoAudit: {enabled: true}", "base", []string{"openbao-audit", projector, both, example}},
		{
			"with three actuators, Prometheus and a collector", "{actuator: {replicas: 3}, monitoring: {enabled: true}, otlp: {enabled: true}}",
			"base",
			[]string{"high-availability", "monitoring", "otlp", projector, example},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := kustomized(t, tt.base, tt.components...)
			values := tt.values
			if inner, ok := strings.CutPrefix(values, "{"); ok {
				values = strings.ReplaceAll(strings.TrimSuffix(inner, "}"), "}, ", "}\n")
			}
			got := rendered(t, projecting(t, values))
			// The same, without the comments of the file.
			const file = "ConfigMap " + systemNamespace + "/keyturn-projections"
			for name, all := range map[string]map[string]object{"kustomize": want, "the chart": got} {
				text, _ := all[file].at("data", "projections.yaml").(string)
				if !strings.Contains(text, "example.org/v1") || !strings.Contains(text, "spec.auth.password") {
					t.Errorf("%s: the file is %q", name, text)
				}
				delete(all, file)
			}
			same(t, want, got)
		})
	}
}

func TestTheProjectorIsOffByDefault(t *testing.T) {
	for _, all := range []map[string]object{rendered(t, ""), kustomized(t, "base")} {
		for name := range all {
			if strings.Contains(name, "projector") {
				t.Errorf("there is %s", name)
			}
		}
	}
}

func TestTheProjectorIsGrantedWhatItsFileSaysAndNothingElse(t *testing.T) {
	const values = `projector:
  enabled: true
  projections:
    - {apiVersion: example.org/v1, kind: Widget, resource: widgets, paths: [spec.a], secrets: [{namespace: a, name: one, keys: [k]}, {namespace: a, name: two, keys: [k]}]}
    - {apiVersion: other.org/v1, kind: Gadget, resource: gadgets, paths: [spec.a, "spec['b.c']['d\\e'].f"], secrets: [{namespace: a, name: two, keys: [k]}, {namespace: b, name: three, keys: [k]}]}
`
	all := rendered(t, values)
	var roles []string
	for name := range all {
		if strings.Contains(name, "Role ") && strings.Contains(name, "projector") {
			roles = append(roles, name)
		}
	}
	slices.Sort(roles)
	if diff := cmp.Diff([]string{"Role a/keyturn-projector", "Role b/keyturn-projector"}, roles); diff != "" {
		t.Fatalf("roles (-want +got):\n%s", diff)
	}
	for name, want := range map[string][]string{
		"Role a/keyturn-projector": {
			"create events", "get secrets `one`", "get secrets `two`", "list gadgets.other.org", "list widgets.example.org",
			"patch gadgets.other.org", "patch widgets.example.org", "watch gadgets.other.org", "watch widgets.example.org",
		},
		"Role b/keyturn-projector": {
			"create events", "get secrets `three`", "list gadgets.other.org", "patch gadgets.other.org", "watch gadgets.other.org",
		},
	} {
		if diff := cmp.Diff(want, all[name]["rules"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for kind, want := range map[string]string{
		"widget": "map[apiGroups:[example.org] apiVersions:[*] operations:[CREATE UPDATE DELETE] resources:[widgets]] [['spec', 'a']]",
		"gadget": `map[apiGroups:[other.org] apiVersions:[*] operations:[CREATE UPDATE DELETE] resources:[gadgets]] [['spec', 'a'], ['spec', 'b.c', 'd\\e', 'f']]`,
	} {
		policy := all["ValidatingAdmissionPolicy <nil>/keyturn-system-projection-"+kind]
		rules, _ := policy.at("spec", "matchConstraints", "resourceRules").([]any)
		variables, _ := policy.at("spec", "variables").([]any)
		if len(rules) != 1 || len(variables) == 0 {
			t.Fatalf("the policy of a %s: got %v", kind, policy)
		}
		if got := fmt.Sprint(rules[0], " ", variables[0].(map[string]any)["expression"]); got != want {
			t.Errorf("the policy of a %s: got\n%s, want\n%s", kind, got, want)
		}
	}
	for name := range rendered(t, values+"admissionPolicy: {enabled: false}") {
		if strings.HasPrefix(name, "ValidatingAdmissionPolicy") {
			t.Errorf("without policies there is %s", name)
		}
	}
	refuses(t, "projector: {enabled: true}", "projector.projections: is empty")
}
