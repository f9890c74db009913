package chart

import (
	"fmt"
	"os"
	"strings"
	"testing"
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
		want, err := os.ReadFile("../../deploy/" + of)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(folder + "/files/" + file); err != nil || string(got) != string(want) {
			t.Errorf("got %v, want that files/%s is deploy/%s", err, file, of)
		}
	}
}

func TestWithoutTheJobOfTheKeysNoPolicyIsForIt(t *testing.T) {
	const policy = "ValidatingAdmissionPolicy <nil>/keyturn-system-keys"
	if rendered(t, "{}")[policy] == nil {
		t.Error("there is none by default")
	}
	if rendered(t, "{keys: {create: false}, nats: {certificate: existing}}")[policy] != nil {
		t.Error("there is one without the job")
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
	out, err := template(t, "admissionPolicy: {protectedNamespaces: [\"a', 'b\"]}")
	if err == nil || !strings.Contains(out, "/admissionPolicy/protectedNamespaces/0") {
		t.Errorf("got %v and\n%s", err, out)
	}
}

func TestTheNamespaceOfTheReleaseReplacesNoValueOfThePolicy(t *testing.T) {
	values := "{cluster: prod, image: {repository: keyturn, tag: v1}, actuator: {serviceAccount: {name: keyturn-system-actuator}}, " +
		"admissionPolicy: {protectedNamespaces: [kube-system, keyturn-system]}}"
	out, err := helm(t, values, "template", "keyturn", folder, "--namespace", "platform")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{`values: ["platform"]`, `values: ["kube-system","keyturn-system"]`, "'system:serviceaccount:platform:keyturn-system-actuator'"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %s in\n%s", want, out)
		}
	}
}
