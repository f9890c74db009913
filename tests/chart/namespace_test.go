package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed"
)

// movedOverlay is the overlay of docs/install.md for another namespace, with an admission policy of somebody else.
const movedOverlay = `
resources: [BASE, other.yaml]
namespace: tools
transformers: [NAMESPACE]
components: [COMPONENTS]
configMapGenerator:
  - name: keyturn
    namespace: keyturn-system
    behavior: merge
    literals:
      - KEYTURN_NATS_URL=nats://keyturn-nats.tools.svc:4222
`

const otherPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: other}
spec: {matchConditions: [{name: is-a-pod, expression: "request.resource.resource == 'pods'"}]}
`

// Kustomize changes no namespace within an expression. A policy for an account of another namespace confines nobody.
func TestAnOverlayWithAnotherNamespaceConfinesItsAccounts(t *testing.T) {
	for _, base := range []string{"base", "namespaced"} {
		for _, component := range []string{"", "cert-manager", "external-nats", "high-availability", "without-admission-policy", "targets"} {
			t.Run(strings.TrimSpace(base+" "+component), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				deploy := func(elem ...string) string {
					path, err := filepath.Abs(filepath.Join(append([]string{"..", "..", "deploy"}, elem...)...))
					if err != nil {
						t.Fatal(err)
					}
					if path, err = filepath.Rel(dir, path); err != nil {
						t.Fatal(err)
					}
					return path
				}
				components := ""
				if component != "" {
					components = deploy("components", component)
				}
				if component == "targets" {
					components += ", " + deploy("targets", "prometheus-operator")
				}
				overlay := strings.NewReplacer("BASE", deploy(base), "NAMESPACE", deploy("namespace"), "COMPONENTS", components).Replace(movedOverlay)
				if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "other.yaml"), []byte(otherPolicy), 0o600); err != nil {
					t.Fatal(err)
				}
				out, err := testbed.Kustomize(t.Context(), os.Stderr, dir)
				if err != nil {
					t.Fatal(err)
				}
				all := objects(t, string(out))
				rest := string(out)
				for name, of := range map[string]string{"actuator": "actuator", "protected": "actuator", "keys": "keys"} {
					policy := all["ValidatingAdmissionPolicy <nil>/keyturn-system-"+name]
					if policy == nil { // Of a kustomize that does not know that it is in no namespace. The API server does.
						policy = all["ValidatingAdmissionPolicy tools/keyturn-system-"+name]
					}
					account := fmt.Sprint(policy.at("spec", "matchConditions"))
					confined := strings.Contains(account, "'system:serviceaccount:tools:keyturn-"+of+"'")
					if want := component != "without-admission-policy"; confined != want {
						t.Errorf("the policy is for %s, want that of the overlay: %v", account, want)
					}
					// The policy, which is in no namespace, keeps its name.
					rest = strings.ReplaceAll(rest, "keyturn-system-"+name, "")
				}
				for name, policy := range all {
					account := fmt.Sprint(policy.at("spec", "matchConditions"))
					if strings.HasPrefix(name, "ValidatingAdmissionPolicy ") && !strings.HasSuffix(name, "/other") && !strings.Contains(account, "'system:serviceaccount:tools:keyturn-") {
						t.Errorf("%s is for %s, want that of the overlay", name, account)
					}
				}
				if lease := all["ConfigMap tools/keyturn"].at("data", "KEYTURN_LEASE_NAMESPACE"); lease != "tools" {
					t.Errorf("namespace of the Lease: got %v", lease)
				}
				rest = strings.ReplaceAll(rest, "keyturn-system-target", "")
				if strings.Contains(rest, systemNamespace) {
					t.Errorf("%s is named in\n%s", systemNamespace, rest)
				}
			})
		}
	}
}
