package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// namesOf are the namespaces that a binding selects by their names.
func namesOf(t *testing.T, binding object) []string {
	t.Helper()
	expressions, _ := binding.at("spec", "matchResources", "namespaceSelector", "matchExpressions").([]any)
	if len(expressions) != 1 {
		t.Fatalf("the selector: got %v, want one expression", expressions)
	}
	expression := object(expressions[0].(map[string]any))
	if key := expression.at("key"); key != "kubernetes.io/metadata.name" {
		t.Fatalf("the selector: got the label %v", key)
	}
	if expression.at("operator") == "DoesNotExist" {
		return nil
	}
	var names []string
	for _, name := range expression.at("values").([]any) {
		names = append(names, name.(string))
	}
	return names
}

func TestTheChartHasCopiesOfItsFiles(t *testing.T) {
	for file, of := range map[string]string{
		"admission.yaml": "admission/actuator.yaml", "admission-keys.yaml": "admission/keys.yaml", "admission-protected.yaml": "admission/protected.yaml",
		"admission-projector.yaml": "components/projector/admission.yaml", "projection.yaml": "projections/example/policy.yaml",
		"target.yaml": "targets/policy/target.yaml", "alerts.yaml": "monitoring/alerts.yaml", "keyturn.json": "monitoring/keyturn.json",
		"nats.conf": "programs/nats.conf", "audit.conf": "components/openbao-audit/nats.conf", "projector.conf": "components/projector/nats.conf",
		"projectoraudit.conf": "components/projector/with-audit/nats.conf",
	} {
		if testkit.ReadFile(t, folder+"/files/"+file) != testkit.ReadFile(t, "../../deploy/"+of) {
			t.Errorf("files/%s is not deploy/%s", file, of)
		}
	}
}

// The actuator reports a policy that is missing, and does not know whether there is a job.
func TestThePolicyOfTheKeysIsThereWithoutTheirJob(t *testing.T) {
	for _, values := range []string{"{}", "{keys: {create: false}, nats: {certificate: existing}}"} {
		for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
			if rendered(t, values)[kind+" <nil>/keyturn-system-keys"] == nil {
				t.Errorf("with %s there is no %s", values, kind)
			}
		}
	}
}

func TestTheAdmissionPolicyFollowsTheValues(t *testing.T) {
	const own = "system:serviceaccount:keyturn-system:"
	tests := []struct{ name, values, protected, reloader, pausedAt, account string }{
		{
			"by default Reloader's annotations are nobody's", "{}",
			"keyturn-system kube-system", "''", "'deployment.reloader.stakater.com/paused-at'", own + "keyturn-actuator",
		},
		{
			"other namespaces can be protected", "{admissionPolicy: {protectedNamespaces: [bank, keyturn-system]}}",
			"keyturn-system bank", "''", "'deployment.reloader.stakater.com/paused-at'", own + "keyturn-actuator",
		},
		{
			"in a namespace that is served only Keyturn itself is protected", "{namespaces: [keyturn-system, shop]}",
			"kube-system", "''", "'deployment.reloader.stakater.com/paused-at'", own + "keyturn-actuator",
		},
		{
			"no namespace is protected by its name", "{namespaces: [keyturn-system], admissionPolicy: {protectedNamespaces: []}}",
			"", "''", "'deployment.reloader.stakater.com/paused-at'",
			own + "keyturn-actuator",
		},
		{
			"another account is confined", "{actuator: {serviceAccount: {name: roller}}}",
			"keyturn-system kube-system", "''", "'deployment.reloader.stakater.com/paused-at'", own + "roller",
		},
		{
			"in Reloader's mode its variables are allowed, and its own namespace is served", "{reloader: {watchGlobally: false}}",
			"kube-system", "'env-vars'", "'deployment.reloader.stakater.com/paused-at'", own + "keyturn-actuator",
		},
		{
			"Reloader's annotations go by their names",
			"{reloader: {reloadStrategy: annotations, custom_annotations: {pauseTime: example.org/paused}}}",
			"keyturn-system kube-system", "'annotations'", "'example.org/paused'", own + "keyturn-actuator",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			objects := rendered(t, test.values)
			policy := objects["ValidatingAdmissionPolicy <nil>/keyturn-system-actuator"]
			variables := map[string]any{}
			list, _ := policy.at("spec", "variables").([]any)
			for _, variable := range list {
				variable := object(variable.(map[string]any))
				variables[fmt.Sprint(variable.at("name"))] = variable.at("expression")
			}
			for name, want := range map[string]string{"reloader": test.reloader, "pausedAt": test.pausedAt} {
				if got := variables[name]; got != want {
					t.Errorf("%s: got %v, want %s", name, got, want)
				}
			}
			conditions := fmt.Sprint(policy.at("spec", "matchConditions"))
			for _, want := range []string{"'" + test.account + "'", "endsWith('" + strings.TrimPrefix(test.account, "system:serviceaccount:keyturn-system") + "')"} {
				if !strings.Contains(conditions, want) {
					t.Errorf("account: got %s, want %s", conditions, want)
				}
			}
			if got := fmt.Sprint(objects["ValidatingAdmissionPolicy <nil>/keyturn-system-protected"].at("spec", "matchConditions")); !strings.Contains(got, "'"+test.account+"'") {
				t.Errorf("account of the policy of protected namespaces: got %s, want %s", got, test.account)
			}
			const binding = "ValidatingAdmissionPolicyBinding <nil>/keyturn-system-protected"
			names := append(namesOf(t, objects[binding+"-own"]), namesOf(t, objects[binding])...)
			if got := strings.Join(names, " "); got != test.protected {
				t.Errorf("protected: got %s, want %s", got, test.protected)
			}
		})
	}
}

func TestAProtectedNamespaceHasTheNameOfOne(t *testing.T) {
	refuses(t, "admissionPolicy: {protectedNamespaces: [\"a', 'b\"]}", "/admissionPolicy/protectedNamespaces/0")
}

func TestTheNamespaceOfTheReleaseReplacesNoValueOfThePolicy(t *testing.T) {
	values := "{cluster: prod, image: {repository: keyturn, tag: v1}, actuator: {serviceAccount: {name: keyturn-system-actuator}}, " +
		"admissionPolicy: {protectedNamespaces: [kube-system, keyturn-system]}}"
	out := releasedIn(t, "platform", values)
	for _, want := range []string{`values: ["platform"]`, `values: ["kube-system","keyturn-system"]`, "'system:serviceaccount:platform:keyturn-system-actuator'"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %s in\n%s", want, out)
		}
	}
}

func TestAJobReachesItsNodeOnlyIfAValueSaysSo(t *testing.T) {
	for values, want := range map[string]string{
		"{}": "false", "{jobs: {enabled: true}}": "false", "{admissionPolicy: {nodeJobs: false}}": "false", "{admissionPolicy: {nodeJobs: true}}": "true",
	} {
		list, _ := rendered(t, values)["ValidatingAdmissionPolicy <nil>/keyturn-system-actuator"].at("spec", "variables").([]any)
		// Overlays of kustomize know it by its index.
		variable := object(list[3].(map[string]any))
		if variable.at("name") != "nodeJobs" || variable.at("expression") != want {
			t.Errorf("with %s: got %v, want nodeJobs as %s", values, variable, want)
		}
	}
}
