package chart

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

// movedOverlay is the overlay of docs/how-to/install.md for another namespace, with an admission policy of somebody else.
const movedOverlay = `
resources: [BASE, other.yaml]
namespace: TOOLS
transformers: [NAMESPACE]
components: [COMPONENTS]
configMapGenerator:
  - name: keyturn
    namespace: keyturn-system
    behavior: merge
    literals:
      - KEYTURN_NATS_URL=nats://keyturn-nats.TOOLS.svc:4222
`

const otherPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: other}
spec: {matchConditions: [{name: is-a-pod, expression: "request.resource.resource == 'pods'"}]}
`

// moved are the manifests of the overlay in a namespace, of a folder of deploy with components, which are folders of deploy, too.
func moved(t *testing.T, namespace, base string, components ...string) string {
	t.Helper()
	dir := t.TempDir()
	writeMoved(t, dir, namespace, base, components...)
	return built(t, dir)
}

func writeMoved(t *testing.T, dir, namespace, base string, components ...string) {
	t.Helper()
	var from []string
	for _, component := range components {
		from = append(from, deployFrom(t, dir, component))
	}
	testkit.WriteFile(t, filepath.Join(dir, "kustomization.yaml"), strings.NewReplacer(
		"BASE", deployFrom(t, dir, base), "NAMESPACE", deployFrom(t, dir, "namespace"), "COMPONENTS", strings.Join(from, ", "), "TOOLS", namespace,
	).Replace(movedOverlay))
	testkit.WriteFile(t, filepath.Join(dir, "other.yaml"), otherPolicy)
}

// policyOfTools is the name of an admission policy, or of a binding of it.
var policyOfTools = regexp.MustCompile(`name: keyturn-system-[a-z-]+\.tools\n|policyName: keyturn-system-[a-z-]+\.tools\n`)

// Kustomize changes no namespace within an expression. A policy for an account of another namespace confines nobody.
func TestAnOverlayWithAnotherNamespaceConfinesItsAccounts(t *testing.T) {
	components := []string{"", "without-admission-policy", "cert-manager", "external-nats", "high-availability", "targets"}
	// The others are for two pods.
	for base, of := range map[string][]string{"base": components, "namespaced": components, "single": components[:2]} {
		for _, component := range of {
			t.Run(strings.TrimSpace(base+" "+component), func(t *testing.T) {
				t.Parallel()
				var components []string
				if component != "" {
					components = append(components, "components/"+component)
				}
				if component == "targets" {
					components = append(components, "targets/prometheus-operator")
				}
				out := moved(t, "tools", base, components...)
				all := objects(t, out)
				for name, of := range map[string]string{"actuator": "actuator", "protected": "actuator", "keys": "keys"} {
					policy := all["ValidatingAdmissionPolicy <nil>/keyturn-system-"+name+".tools"]
					if policy == nil { // Of a kustomize that does not know that it is in no namespace. The API server does.
						policy = all["ValidatingAdmissionPolicy tools/keyturn-system-"+name+".tools"]
					}
					account := fmt.Sprint(policy.at("spec", "matchConditions"))
					confined := strings.Contains(account, "['system:serviceaccount:tools:keyturn-"+of+"', 'system:serviceaccount:tools:keyturn']")
					if want := component != "without-admission-policy"; confined != want {
						t.Errorf("the policy is for %s, want that of the overlay: %v", account, want)
					}
				}
				for name, policy := range all {
					account := fmt.Sprint(policy.at("spec", "matchConditions"))
					if strings.HasPrefix(name, "ValidatingAdmissionPolicy ") && !strings.HasSuffix(name, "/other") && !strings.Contains(account, "'system:serviceaccount:tools:keyturn-") {
						t.Errorf("%s is for %s, want that of the overlay", name, account)
					}
				}
				if rest := policyOfTools.ReplaceAllString(out, ""); strings.Contains(rest, systemNamespace) {
					t.Errorf("%s is named in\n%s", systemNamespace, rest)
				}
			})
		}
	}
}

// Kustomize moves the permissions in the namespace that is served as well, where they would be for the keys of the installation.
func TestAnOverlayWithAnotherNamespaceServesTheSame(t *testing.T) {
	all := objects(t, moved(t, "tools", "namespaced"))
	for _, program := range []string{"watcher", "actuator"} {
		for _, kind := range []string{"Role", "RoleBinding"} {
			if all[kind+" team-a/keyturn-"+program] == nil {
				t.Errorf("there is no %s of the %s in the namespace that it serves", kind, program)
			}
			if all[kind+" tools/keyturn-"+program] != nil {
				t.Errorf("there is a %s of the %s in the namespace of Keyturn", kind, program)
			}
		}
		subjects := fmt.Sprint(all["RoleBinding team-a/keyturn-"+program].at("subjects"))
		if want := fmt.Sprintf("[map[kind:ServiceAccount name:keyturn-%s namespace:tools]]", program); subjects != want {
			t.Errorf("the binding is for %s, want %s", subjects, want)
		}
	}
}

// Those in other namespaces are beside the overlay, in a kustomization on top of it, where nothing moves them.
func TestAKustomizationOnTopHasTheRolesOfMoreNamespaces(t *testing.T) {
	dir := t.TempDir()
	writeMoved(t, filepath.Join(dir, "keyturn"), "tools", "namespaced")
	roles := testkit.ReadFile(t, "../../deploy/projections/example/rbac.yaml")
	testkit.WriteFile(t, filepath.Join(dir, "rbac.yaml"), strings.ReplaceAll(roles, systemNamespace, "tools"))
	testkit.WriteFile(t, filepath.Join(dir, "kustomization.yaml"), `
resources: [keyturn, rbac.yaml]
patches:
  - target: {kind: ConfigMap, name: keyturn}
    patch: |
      - {op: replace, path: /data/KEYTURN_NAMESPACES, value: "team-a,team-b"}
`)
	all := objects(t, built(t, dir))
	for _, name := range []string{"Role team-a/keyturn-watcher", "Role shop/keyturn-projector", "RoleBinding shop/keyturn-projector"} {
		if all[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	if subjects := fmt.Sprint(all["RoleBinding shop/keyturn-projector"].at("subjects")); !strings.Contains(subjects, "namespace:tools") {
		t.Errorf("the binding is for %s", subjects)
	}
}

// The overlay would restrict the other pods of a namespace that is there, and delete them with its own.
func TestAnOverlayLeavesANamespaceThatIsThereAlone(t *testing.T) {
	for _, base := range []string{"base", "namespaced", "single"} {
		for component, owns := range map[string]bool{"components/without-namespace": false, "components/jobs": true} {
			if out := moved(t, "tools", base, component); strings.Contains(out, "\nkind: Namespace\n") != owns {
				t.Errorf("%s with %s: want that the Namespace is there: %v", base, component, owns)
			}
		}
	}
}

// Otherwise each would replace the policies of the other by some for its own accounts.
func TestOverlaysInNamespacesOfTheirOwnShareNoObject(t *testing.T) {
	components := []string{"components/projector", "projections/example", "components/monitoring"}
	overlays := map[string]string{}
	for namespace, out := range map[string]string{
		// The second is the beginning of the first.
		systemNamespace: built(t, overlay(t, "", "namespaced", components...)),
		"keyturn":       moved(t, "keyturn", "namespaced", components...), "tools": moved(t, "tools", "namespaced", components...),
	} {
		for name, o := range objects(t, out) {
			kind, _, _ := strings.Cut(name, " ")
			if strings.HasPrefix(kind, "ValidatingAdmissionPolicy") {
				name = fmt.Sprintf("%s %v", kind, o.at("metadata", "name"))
			}
			served := strings.Contains(name, " team-a/") || strings.Contains(name, " shop/") // by all of them
			if other, taken := overlays[name]; taken && !served && !strings.HasSuffix(name, " other") {
				t.Errorf("%s is in the overlays of %s and %s", name, other, namespace)
			}
			overlays[name] = namespace
		}
	}
}

func TestTheBindingsOfAnOverlayWithAnotherNamespaceAreForItsPolicies(t *testing.T) {
	all := objects(t, moved(t, "tools", "base", "components/targets", "targets/prometheus-operator", "components/projector", "projections/example"))
	policies, bound := map[any]bool{}, map[any]bool{}
	for name, o := range all {
		switch kind, _, _ := strings.Cut(name, " "); kind {
		case "ValidatingAdmissionPolicy":
			policies[o.at("metadata", "name")] = true
		case "ValidatingAdmissionPolicyBinding":
			bound[o.at("spec", "policyName")] = true
		}
	}
	delete(policies, "other")
	if diff := cmp.Diff(policies, bound); diff != "" || len(policies) != 6 {
		t.Errorf("policies, and those that are bound (-policies +bound):\n%s\nof %v", diff, policies)
	}
}
