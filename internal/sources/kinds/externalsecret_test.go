package kinds

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/tests/testkit"
)

// syncedJSON is an ExternalSecret as the operator leaves it, with the canary wherever a value could be quoted.
const syncedJSON = `{
	"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
	"metadata": {"namespace": "shop", "name": "db", "uid": "u", "resourceVersion": "5", "labels": {"a": "` + canary + `"},
		"annotations": {"keyturn.dev/cause": "e1", "keyturn.dev/traceparent": "` + testTraceparent + `", "b": "` + canary + `"}},
	"spec": {"refreshInterval": "1h0m0s", "secretStoreRef": {"name": "bao"}, "newer": {"field": ["` + canary + `"]},
		"target": {"name": "db-credentials", "template": {"data": {"a": "` + canary + `"}}, "newer": true},
		"data": [{"secretKey": "a", "remoteRef": {"key": "` + canary + `"}}]},
	"status": {"refreshTime": "2026-03-14T15:09:26Z", "syncedResourceVersion": "1-7c2b41", "binding": {"name": "db-credentials"}, "newer": [1],
		"conditions": [
			{"type": "Deleted", "status": "False", "reason": "SecretDeleted", "message": "` + canary + `"},
			{"type": "Ready", "status": "True", "reason": "SecretSynced", "message": "` + canary + `", "newer": {}}]}}`

func TestReduceKeepsTheStatusOfAnExternalSecret(t *testing.T) {
	got := heededOf(t, externalSecretKind{}, keyringOf(1), reloader.Default(), customOf(t, syncedJSON))
	want := &Object{
		Source: events.Source{Kind: events.KindExternalSecret, Namespace: "shop", Name: "db"}, UID: "u", ResourceVersion: "5",
		extras: extras{details: &details{
			asked: request{event: "e1", trace: events.TraceContext{Parent: testTraceparent}},
			status: &status{verb: events.VerbSynced, fields: events.Status{
				Secret: "db-credentials", Reason: "SecretSynced", Revision: "1-7c2b41",
			}},
		}},
	}
	testkit.WantEqual(t, "what is kept", want, got, everyField)
	if key, err := cache.MetaNamespaceKeyFunc(got); err != nil || key != "shop/db" {
		t.Errorf("a reflector calls it %q: %v", key, err)
	}
}

func TestTheStatusOfAnExternalSecret(t *testing.T) {
	body := func(fields string) string {
		return `{"metadata": {"name": "db"}, "spec": {}, "status": {` + fields + `}}`
	}
	ready := func(value string) string {
		return body(`"conditions": [{"type": "Ready", "status": "` + value + `", "reason": "Because", "message": "` + canary + `"}]`)
	}
	have := func(verb events.Verb, fields events.Status) *status { return &status{verb: verb, fields: fields} }
	for _, tt := range []struct {
		name, resource string
		want           *status
	}{
		{"one that is ready", ready("True"), have(events.VerbSynced, events.Status{Secret: "db", Reason: "Because"})},
		{"one that is not ready", ready("False"), have(events.VerbFailed, events.Status{Secret: "db", Reason: "Because"})},
		{"one that is bound to another Secret", body(`"binding": {"name": "b"}`), have("", events.Status{Secret: "b"})},
		{
			"one that writes no Secret",
			`{"metadata": {"name": "db"}, "spec": {"target": {"manifest": {"apiVersion": "v1", "kind": "ConfigMap"}}}, "status": {"binding": {"name": "db"}}}`,
			have("", events.Status{}),
		},
		{
			"one whose texts are none",
			body(`"syncedResourceVersion": "a\nb", "conditions": [{"type": "Ready", "status": "True", "reason": "` + strings.Repeat("x", maxStatus+1) + `"}]`),
			have(events.VerbSynced, events.Status{Secret: "db"}),
		},
		{"one whose status cannot be decoded", `{"metadata": {"name": "db"}, "status": {"conditions": {}}}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.WantEqual(t, "status", tt.want, syncStatus(customOf(t, tt.resource)), cmp.AllowUnexported(status{}))
		})
	}
}

// What comes from the API server was checked against the schema of whichever version of the operator is installed.
func FuzzReduceCustomResources(f *testing.F) {
	f.Add([]byte(syncedJSON))
	f.Add([]byte(failingJSON))
	f.Add([]byte(`{"metadata": {"name": 1}, "spec": 2, "status": {"conditions": [{}]}}`))
	f.Add([]byte(`{"status": {"revision": -1, "lastFailureTime": "x", "notAfter": null, "conditions": [null]}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		resource := &unstructured.Unstructured{}
		if err := json.Unmarshal(content, &resource.Object); err != nil {
			return
		}
		for _, kind := range []Kind{externalSecretKind{}, certificateKind{}} {
			reduced, ok := kind.Reduce(keyringOf(1), resource)
			if !ok {
				t.Fatalf("%s does not know its own", kind.Listing().Kind)
			}
			cacheOf(reduced)
			if reduced.details.status == nil {
				continue
			}
			texts(reflect.ValueOf(reduced.details.status), func(text string) {
				if len(text) > maxStatus || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
					t.Errorf("it keeps %q", text)
				}
			})
		}
	})
}
