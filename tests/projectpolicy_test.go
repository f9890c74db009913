package tests

import (
	"cmp"
	"context"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
)

// confine applies the admission policies for the account of the rig, with the fields that it is given: those of the example if it is empty.
func (r *projectRig) confine(paths string) {
	r.Helper()
	for _, file := range []string{"components/projector/admission.yaml", "projections/example/policy.yaml"} {
		content, err := os.ReadFile("../deploy/" + file)
		testkit.Must(r, err)
		const ofExample = "[['spec', 'auth', 'user'], ['spec', 'auth', 'password']]"
		replaced := strings.NewReplacer("keyturn-system", r.namespace, ofExample, cmp.Or(paths, ofExample)).Replace(string(content))
		testkit.Must(r, plane.ApplyYAML(r.Context(), strings.NewReader(replaced)))
	}
	own := []string{r.namespace + "-projector", r.namespace + "-projection-widget"}
	r.Cleanup(func() { removePolicies(r, own, own) })
}

func TestTheProjectorsTokenWritesTheFieldsThatItWasGiven(t *testing.T) {
	t.Parallel()
	r := newProjectRig(t, nil)
	r.confine("")
	config := configOf(t, r.namespace, projectorAccount)
	version := "v1"
	// patch sends one as the projector's token, in a dry run.
	patch := func(name string, kind types.PatchType, manager string, force bool, body string) error {
		t.Helper()
		resource := schema.GroupVersionResource{Group: "example.org", Version: version, Resource: "widgets"}
		widgets := dynamic.NewForConfigOrDie(config).Resource(resource).Namespace(r.namespace)
		content, err := yaml.YAMLToJSON([]byte(body))
		testkit.Must(t, err)
		options := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: manager}
		if force {
			options.Force = &force
		}
		_, err = widgets.Patch(t.Context(), name, kind, content, options)
		return err
	}
	const manager = "keyturn-projector"
	apply := func(name, fields string) string {
		return "{apiVersion: example.org/v1, kind: Widget, metadata: {name: " + name + "}, " + fields + "}"
	}
	r.secret("db", map[string]string{"user": "app", "password": "one"})
	r.widget("main", wantsPassword)
	r.widget("plain", "")
	testkit.Await(t, "the policy is in force", func(context.Context) bool {
		return r.refused(patch("main", types.MergePatchType, manager, false, "{spec: {size: 9}}"))
	})

	// The program has all that it needs, also to let go of a field.
	r.startReady()
	r.awaitField("main", "password", "one")
	r.widget("main", wantsPassword+";spec.auth.user=secret/db/user")
	r.awaitField("main", "user", "app")
	r.widget("later", wantsPassword)
	r.awaitField("later", "password", "one")
	r.widget("later", "")
	r.awaitField("later", "password", "none")
	r.awaitProjection("later", "released")
	testkit.Await(t, "there is a Kubernetes Event", func(ctx context.Context) bool {
		list, err := r.kube.CoreV1().Events(r.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=later"})
		return err == nil && len(list.Items) == 2
	})
	r.stopProjector()

	r.widget("taken", wantsPassword)
	manual := []byte(`{"spec":{"auth":{"password":"by-hand"}}}`)
	if _, err := r.widgets.Patch(t.Context(), "taken", types.MergePatchType, manual, metav1.PatchOptions{FieldManager: "someone"}); err != nil {
		t.Fatal(err)
	}
	const both = "spec: {auth: {user: a, password: b}}"
	if err := patch("main", types.ApplyPatchType, manager, false, apply("main", both)); err != nil {
		t.Errorf("the fields that it was given: %v", err)
	}
	r.widget("restored", wantsPassword)
	if _, err := r.widgets.Patch(t.Context(), "restored", types.MergePatchType, []byte(`{"spec":{"size":9}}`), metav1.PatchOptions{FieldManager: "someone"}); err != nil {
		t.Fatal(err)
	}
	unname(t, r.widgets, "restored", "someone")
	if err := patch("restored", types.ApplyPatchType, manager, false, apply("restored", both)); err != nil {
		t.Errorf("the fields that it was given of what somebody without a name has written: %v", err)
	}
	tests := []struct {
		what, name string
		kind       types.PatchType
		manager    string
		force      bool
		body       string
	}{
		{"applies another field", "main", types.ApplyPatchType, manager, false, apply("main", "spec: {auth: {user: a, password: b}, box: {token: c}}")},
		{"takes another field from another manager", "main", types.ApplyPatchType, manager, true, apply("main", "spec: {size: 9, auth: {user: a, password: b}}")},
		{"owns a field that it was not given", "main", types.ApplyPatchType, manager, false, apply("main", "spec: {size: 3, auth: {user: a, password: b}}")},
		{"takes its field from another manager", "taken", types.ApplyPatchType, manager, true, apply("taken", "spec: {auth: {password: b}}")},
		{"applies as another manager", "main", types.ApplyPatchType, "someone", true, apply("main", both)},
		{"writes the field without applying it", "main", types.MergePatchType, manager, false, "{spec: {auth: {password: b}}}"},
		{"replaces another field", "main", types.JSONPatchType, manager, false, "[{op: replace, path: /spec/size, value: 9}]"},
		{"removes the spec", "main", types.JSONPatchType, manager, false, "[{op: remove, path: /spec}]"},
		{"changes the annotation", "main", types.ApplyPatchType, manager, true, strings.Replace(apply("main", both), "name: main", "name: main, annotations: {keyturn.dev/project: spec.auth.user=secret/db/password}", 1)},
		{"annotates what has no annotation", "plain", types.MergePatchType, manager, false, "{metadata: {annotations: {keyturn.dev/project: " + wantsPassword + "}}}"},
		{"removes the annotation", "main", types.JSONPatchType, manager, false, "[{op: remove, path: /metadata/annotations}]"},
		{"labels it", "main", types.MergePatchType, manager, false, "{metadata: {labels: {a: b}}}"},
		{"adds a finalizer", "main", types.MergePatchType, manager, false, "{metadata: {finalizers: [example.org/a]}}"},
		{"writes what has no annotation", "plain", types.ApplyPatchType, manager, false, apply("plain", both)},
		{"writes the field as the joined oldest managers", "taken", types.MergePatchType, "ancient-changes", false, "{spec: {auth: {password: b}}}"},
		{"joins the oldest managers", "main", types.MergePatchType, manager, false, "{metadata: {managedFields: [{manager: ancient-changes, operation: Update, apiVersion: example.org/v1, fieldsType: FieldsV1, fieldsV1: {}}]}}"},
		{"forgets who owns which fields", "main", types.MergePatchType, manager, false, "{metadata: {managedFields: [{}]}}"},
	}
	for _, tt := range tests {
		if err := patch(tt.name, tt.kind, tt.manager, tt.force, tt.body); !r.refused(err) {
			t.Errorf("it %s: got %v, want that the policy refuses it", tt.what, err)
		}
	}
	version = "v1beta1"
	own := "{metadata: {managedFields: [{manager: keyturn-projector, operation: Apply, apiVersion: example.org/v1beta1, fieldsType: FieldsV1, " +
		"fieldsV1: {'f:spec': {'f:auth': {'f:password': {}}}}}]}}"
	if err := patch("taken", types.MergePatchType, manager, false, own); !r.refused(err) {
		t.Errorf("it forgets the owners of another version: got %v, want that the policy refuses it", err)
	}
	event := "{apiVersion: v1, kind: Event, metadata: {name: a, namespace: " + r.namespace + "}, reportingComponent: REPORTER, source: {component: keyturn}, " +
		"type: Normal, reason: R, message: MESSAGE, involvedObject: {apiVersion: OF, kind: Widget, namespace: " + r.namespace + ", name: main}}"
	events := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(r.namespace)
	for _, tt := range []struct {
		reporter, of, message string
		refused               bool
	}{
		{"keyturn.dev/projector", "example.org/v1", strings.Repeat("x", 1024), false},
		{"keyturn.dev/projector", "example.org/v1", strings.Repeat("x", 1025), true},
		{"kubelet", "example.org/v1", "m", true},
		{"keyturn.dev/projector", "v1", "m", true},
	} {
		object := &unstructured.Unstructured{}
		manifest := strings.NewReplacer("REPORTER", tt.reporter, "OF", tt.of, "MESSAGE", tt.message).Replace(event)
		testkit.Must(t, yaml.Unmarshal([]byte(manifest), &object.Object))
		_, err := events.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if r.refused(err) != tt.refused || err != nil && !tt.refused {
			t.Errorf("an Event of %s about a %s of %d bytes: got %v, want refused %v", tt.reporter, tt.of, len(tt.message), err, tt.refused)
		}
	}
	// Others are not confined.
	if _, err := r.widgets.Patch(t.Context(), "main", types.MergePatchType, []byte(`{"spec":{"size":9}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("another account: %v", err)
	}
}
