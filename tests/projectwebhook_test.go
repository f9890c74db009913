package tests

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// webhook serves a webhook of the API server, and returns the fields of its clientConfig. It answers what answer returns for the request.
func webhook(t *testing.T, answer func(request map[string]any) map[string]any) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		request, _ := review["request"].(map[string]any)
		response := answer(request)
		response["uid"] = request["uid"]
		delete(review, "request")
		review["response"] = response
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return "{url: \"" + server.URL + "\", caBundle: " + base64.StdEncoding.EncodeToString(ca) + "}"
}

// converted is a kind whose resources are stored as v1. The API server asks a webhook for them as v2.
const converted = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.converted.example.org}
spec:
  group: converted.example.org
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: CLIENT}}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
    - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// It is not parallel: controllers that want to know of all kinds wait in vain for the objects of this one.
func TestWhatAWebhookSaysAboutAListIsNotRepeated(t *testing.T) {
	const value = "quoted-by-a-webhook-0123456789"
	client := webhook(t, func(request map[string]any) map[string]any {
		quoted, _ := json.Marshal(request["objects"])
		return map[string]any{"result": map[string]any{"status": "Failure", "message": "cannot convert " + string(quoted)}}
	})
	if err := plane.ApplyYAML(t.Context(), strings.NewReader(strings.Replace(converted, "CLIENT", client, 1))); err != nil {
		t.Fatal(err)
	}
	kinds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	t.Cleanup(func() {
		err := dynamic.NewForConfigOrDie(plane.Config()).Resource(kinds).Delete(context.WithoutCancel(t.Context()), "gadgets.converted.example.org", metav1.DeleteOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	r := newProjectRig(t, func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
		return append(rules, rbacv1.PolicyRule{
			APIGroups: []string{"converted.example.org"}, Resources: []string{"gadgets"}, Verbs: []string{"list", "watch", "patch"},
		})
	})
	gadget := "{apiVersion: converted.example.org/v1, kind: Gadget, metadata: {namespace: " + r.namespace + ", name: main}, spec: {password: " + value + "}}"
	if err := plane.ApplyYAML(t.Context(), strings.NewReader(gadget)); err != nil {
		t.Fatal(err)
	}
	gadgets := dynamic.NewForConfigOrDie(plane.Config()).Resource(schema.GroupVersionResource{Group: "converted.example.org", Version: "v2", Resource: "gadgets"})
	if _, err := gadgets.Namespace(r.namespace).List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), value) {
		t.Fatalf("the API server quotes the value when it is asked by hand: got %v", err)
	}
	example := string(exampleOf(t, "projections.yaml", r.namespace))
	// In another namespace the projector has no Role.
	example = strings.Replace(example, "    secrets:\n", "    secrets:\n      - {namespace: default, name: db, keys: [password]}\n", 1)
	r.configure(example + "  - apiVersion: converted.example.org/v2\n    kind: Gadget\n    resource: gadgets\n    paths: [spec.password]\n" +
		"    secrets: [{namespace: " + r.namespace + ", name: db, keys: [password]}]\n")
	r.secret("db", map[string]string{"password": "one"})
	r.widget("main", wantsPassword)
	r.resync = "1h"
	r.start("KUBE_FEATURE_WatchListClient=false") // A stream of the list would never end.
	r.awaitField("main", "password", "one")
	r.awaitProjection("main", "applied")
	for place, why := range map[string]string{"gadgets.converted.example.org": "listing and watching: ", "widgets.example.org in namespace default": "(code 403)"} {
		testkit.Await(t, "the log says that "+place+" cannot be listed", func(context.Context) bool {
			return slices.ContainsFunc(strings.Split(r.projector.Output(), "\n"), func(line string) bool {
				return strings.Contains(line, place) && strings.Contains(line, why)
			})
		})
	}
	// What cannot be listed delays no event of others.
	r.secret("db", map[string]string{"password": "two"})
	r.publish("db", "2", events.TraceContext{})
	r.awaitField("main", "password", "two")
	r.leaksNothing(value)
}

// altering has the API server ask a webhook about the Widgets of a namespace.
const altering = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: NAMESPACE}
webhooks:
  - name: widgets.example.org
    clientConfig: CLIENT
    rules: [{apiGroups: [example.org], apiVersions: [v1], resources: [widgets], operations: [CREATE, UPDATE]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
    admissionReviewVersions: [v1]
    sideEffects: None
`

// patches are the requests of the projector that write a Widget.
func (r *projectRig) patches(name string) []testbed.AuditEntry {
	r.Helper()
	return slices.DeleteFunc(r.requests(), func(entry testbed.AuditEntry) bool { return entry.Verb != "patch" || entry.Name != name })
}

// alter trims the password of a Widget, takes that of the Widget "cleared" away, and refuses those of size 13.
func alter(request map[string]any) map[string]any {
	object, _ := request["object"].(map[string]any)
	password, has, _ := unstructured.NestedString(object, "spec", "auth", "password")
	size, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "size")
	var patch string
	switch {
	case has && size == float64(13):
		return map[string]any{"allowed": false, "status": map[string]any{"code": 422, "message": "no password here: " + password}}
	case has && request["name"] == "cleared":
		patch = `[{"op": "remove", "path": "/spec/auth/password"}]`
	case strings.HasSuffix(password, "\n"):
		trimmed, _ := json.Marshal(strings.TrimSpace(password))
		patch = `[{"op": "replace", "path": "/spec/auth/password", "value": ` + string(trimmed) + `}]`
	default:
		return map[string]any{"allowed": true}
	}
	return map[string]any{"allowed": true, "patchType": "JSONPatch", "patch": base64.StdEncoding.EncodeToString([]byte(patch))}
}

func TestAValueThatTheAPIServerDoesNotKeepIsToldOnce(t *testing.T) {
	t.Parallel()
	const value = "altered-value-0123456789"
	r := newProjectRig(t, nil)
	configuration := strings.NewReplacer("NAMESPACE", r.namespace, "CLIENT", webhook(t, alter)).Replace(altering)
	if err := plane.ApplyYAML(t.Context(), strings.NewReader(configuration)); err != nil {
		t.Fatal(err)
	}
	webhooks := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
	t.Cleanup(func() {
		err := dynamic.NewForConfigOrDie(plane.Config()).Resource(webhooks).Delete(context.WithoutCancel(t.Context()), r.namespace, metav1.DeleteOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	resize := func(size string) {
		t.Helper()
		patch := []byte(`{"spec":{"size":` + size + `}}`)
		if _, err := r.widgets.Patch(t.Context(), "refused", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "someone"}); err != nil {
			t.Fatal(err)
		}
	}
	r.secret("db", map[string]string{"password": value + "\n"})
	for _, name := range []string{"main", "cleared", "refused"} {
		r.widget(name, "")
	}
	resize("13")
	testkit.Await(t, "the webhook is asked", func(context.Context) bool { return r.quotes("refused", "one-0123456789", "spec", "auth", "password") })
	for _, name := range []string{"main", "cleared"} {
		r.widget(name, wantsPassword)
	}
	annotate := []byte(`{"metadata":{"annotations":{"keyturn.dev/project":"` + wantsPassword + `"}}}`)
	if _, err := r.widgets.Patch(t.Context(), "refused", types.MergePatchType, annotate, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	r.startReady()
	const message = "The API server has stored another value in spec.auth.password than was applied: a webhook alters it. " +
		"Have it leave the field alone, or put into the Secret what it makes of the value."
	for _, name := range []string{"main", "cleared"} {
		if told := r.awaitProjection(name, "not-kept"); told.Message != message || told.Verb != events.VerbFailed {
			t.Errorf("%s: got %s: %q", name, told.Verb, told.Message)
		}
	}
	if got := r.field("main", "password"); got != value {
		t.Errorf("got %q, want what the webhook made of it", got)
	}
	r.awaitProjection("refused", "rejected")
	r.awaitReads(len(r.reads()) + 6)
	for _, name := range []string{"main", "cleared"} {
		if reports := len(r.projections(name)); reports != 1 {
			t.Errorf("%s is compared again: got %d reports, want one", name, reports)
		}
	}
	r.leaksNothing(value)

	// Once the Secret has what the webhook makes of it, all is well.
	r.secret("db", map[string]string{"password": value})
	if told := r.awaitProjection("main", "recovered"); told.Verb != events.VerbApplied {
		t.Errorf("got %s", told.Verb)
	}

	// A resource that was refused is tried again with its next generation, and not only by the next resync.
	r.stopProjector()
	r.resync = "1h"
	before := len(r.patches("refused"))
	r.startReady()
	testkit.Await(t, "it is refused again", func(context.Context) bool { return len(r.patches("refused")) > before })
	resize("3")
	r.awaitField("refused", "password", value)
	r.leaksNothing(value)
}
