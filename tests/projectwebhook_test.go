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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
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
	testkit.Must(t, plane.ApplyYAML(t.Context(), strings.NewReader(strings.Replace(converted, "CLIENT", client, 1))))
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
	testkit.Must(t, plane.ApplyYAML(t.Context(), strings.NewReader(gadget)))
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
