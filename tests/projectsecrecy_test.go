package tests

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/keyturn/keyturn/tests/testkit"
)

// quoting is an admission policy that quotes the password of each Widget of a namespace in a warning, and of a bad one in its refusal.
const quoting = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: POLICY}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [example.org], apiVersions: [v1], resources: [widgets], operations: [CREATE, UPDATE]}]
  validations:
    - expression: "!has(object.spec.auth) || !object.spec.auth.password.startsWith('PREFIX')"
      messageExpression: "'do not use ' + object.spec.auth.password"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: POLICY}
spec:
  policyName: POLICY
  validationActions: [ACTION]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}}
`

// quotes reports whether the API server, asked by hand in a dry run, repeats the value in its answer or in a warning. It does so of most values that
// it does not accept.
func (r *projectRig) quotes(name, value string, path ...string) bool {
	r.Helper()
	var warned warnings
	config := rest.CopyConfig(plane.Config())
	config.WarningHandler = &warned
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"name": name}}}
	testkit.Must(r, unstructured.SetNestedField(object.Object, value, path...))
	resource := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}
	_, err := dynamic.NewForConfigOrDie(config).Resource(resource).Namespace(r.namespace).Apply(r.Context(), name, object,
		metav1.ApplyOptions{FieldManager: "someone", DryRun: []string{metav1.DryRunAll}})
	return err != nil && strings.Contains(err.Error(), value) || strings.Contains(string(warned), value)
}

// warnings are those of the API server.
type warnings string

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) { *w += warnings(text + "\n") }

func TestWhatTheAPIServerSaysAboutAValueIsNotRepeated(t *testing.T) {
	t.Parallel()
	r := newProjectRig(t, nil)
	more := "    paths:\n      - spec.size\n      - spec.nowhere\n"
	r.configure(strings.Replace(string(exampleOf(t, "projections.yaml", r.namespace)), "    paths:\n", more, 1))
	for action, prefix := range map[string]string{"Deny": "denied", "Warn": "warned"} {
		name := r.namespace + "-" + strings.ToLower(action)
		policy := strings.NewReplacer("POLICY", name, "NAMESPACE", r.namespace, "ACTION", action, "PREFIX", prefix).Replace(quoting)
		testkit.Must(t, plane.ApplyYAML(t.Context(), strings.NewReader(policy)))
	}
	const unanswered = "The API server refuses it without a reason, as of a field that the kind does not have, or that is no text (code 500). It is tried again."
	tests := []struct {
		name, value, path, reason, message string
		quoted                             bool
	}{
		{
			"validation", "a value with spaces 0123456789", "spec.auth.password", "rejected",
			"The API server does not accept spec.auth.password (Invalid, code 422).", true,
		},
		{"admission", "denied-value-0123456789", "spec.auth.password", "rejected", "The API server does not accept the fields (Invalid, code 422).", true},
		{"warning", "warned-value-0123456789", "spec.auth.password", "applied", "Applied spec.auth.password from secret/db/password.", true},
		{"type", "no-number-0123456789", "spec.size", "unavailable", unanswered, false},
		{"schema", "no-field-0123456789", "spec.nowhere", "unavailable", unanswered, false},
	}
	r.secret("db", map[string]string{"password": "harmless"})
	r.widget("probe", "")
	for _, prefix := range []string{"denied", "warned"} {
		testkit.Await(t, "the policy is in force", func(context.Context) bool { return r.quotes("probe", prefix+"-probe", "spec", "auth", "password") })
	}
	r.startReady()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r.secret("db", map[string]string{"password": tt.value})
			r.widget(tt.name, "")
			if quoted := r.quotes(tt.name, tt.value, strings.Split(tt.path, ".")...); quoted != tt.quoted {
				t.Fatalf("the API server quotes the value: got %t, want %t", quoted, tt.quoted)
			}
			r.widget(tt.name, tt.path+"=secret/db/password")
			told := r.awaitProjection(tt.name, tt.reason)
			if told.Message != tt.message {
				t.Errorf("got %q, want %q", told.Message, tt.message)
			}
			r.leaksNothing(tt.value)
		})
	}
}
