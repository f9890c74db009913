package externalsecret

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestWhatMattersOfAnExternalSecretIsRead(t *testing.T) {
	es := Read(object(t, `
metadata:
  name: db
  namespace: shop
  uid: u
  resourceVersion: "7"
  labels: {a: b}
  annotations: {external-secrets.io/force-sync: main/root/secret/db/2, keyturn.dev/cause: c, other: x}
  ownerReferences:
    - {apiVersion: external-secrets.io/v1, kind: ClusterExternalSecret, name: all, uid: v, controller: true}
spec:
  target: {name: db-secret}
  refreshInterval: 1h
status:
  refreshTime: "2026-03-14T15:09:26Z"
  syncedResourceVersion: 1-abc
  conditions: [{type: Deleted, status: "False"}, {type: Ready, status: "True"}]
`))
	meta := metav1.ObjectMeta{
		Namespace: "shop", Name: "db", UID: "u", ResourceVersion: "7",
		Annotations: map[string]string{AnnotationForceSync: "main/root/secret/db/2", "keyturn.dev/cause": "c"},
	}
	testkit.WantEqual(t, "metadata", meta, es.ObjectMeta)
	refreshed := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	target := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db-secret"}
	if es.Owner != "all" || es.Target != target || es.SyncedVersion != "1-abc" || !es.RefreshTime.Equal(refreshed) || !es.Ready || es.Failed {
		t.Errorf("got %+v", es)
	}
}

func TestWhatAnExternalSecretWrites(t *testing.T) {
	secret := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	other := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "other"}
	for _, test := range []struct {
		name, target, status string
		want                 events.Source
	}{
		{"is a Secret of its own name", "{}", "{}", secret},
		{"is the Secret that it is bound to", "{name: db}", "{binding: {name: other}}", other},
		{"is nothing where somebody else creates the Secret", "{name: db, creationPolicy: None}", "{binding: {name: db}}", events.Source{}},
		{"is a ConfigMap", "{manifest: {apiVersion: v1, kind: ConfigMap}}", "{}", events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "db"}},
		{"is something that nobody watches", "{manifest: {apiVersion: example.org/v1, kind: Secret}}", "{}", events.Source{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			obj := object(t, "spec: {target: "+test.target+"}\nstatus: "+test.status)
			if got := Read(obj).Target; got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestWhatTheTemplateOfAnExternalSecretNames(t *testing.T) {
	const spec = "spec: {target: {template: {templateFrom: " +
		"[{configMap: {name: page, items: []}}, {literal: x}, {secret: {name: more, items: []}}, {secret: {name: db, items: []}}]}}}"
	want := []events.Source{{Kind: events.KindConfigMap, Namespace: "shop", Name: "page"}, {Kind: events.KindSecret, Namespace: "shop", Name: "more"}}
	testkit.WantEqual(t, "templates, without what it writes", want, Read(object(t, spec)).Templates)
	const owned = "metadata: {name: db, namespace: shop, ownerReferences: " +
		"[{apiVersion: external-secrets.io/v1, kind: ClusterExternalSecret, name: a, uid: u, controller: true}]}\n"
	if got := Read(object(t, owned+spec)).Templates; got != nil {
		t.Errorf("got %v for one that a ClusterExternalSecret created", got)
	}
}

func TestOnlyAClusterExternalSecretThatControlsItIsItsOwner(t *testing.T) {
	for _, test := range []struct{ name, reference, want string }{
		{"one that controls it", "{apiVersion: external-secrets.io/v1, kind: ClusterExternalSecret, name: a, uid: u, controller: true}", "a"},
		{"one that does not control it", "{apiVersion: external-secrets.io/v1, kind: ClusterExternalSecret, name: a, uid: u}", ""},
		{"another kind", "{apiVersion: external-secrets.io/v1, kind: ExternalSecret, name: a, uid: u, controller: true}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			es := Read(object(t, "metadata: {name: db, namespace: shop, ownerReferences: ["+test.reference+"]}"))
			if es.Owner != test.want {
				t.Errorf("got %q, want %q", es.Owner, test.want)
			}
		})
	}
}

func TestWhatStandsInTheWayOfASync(t *testing.T) {
	for _, test := range []struct {
		name, spec string
		never      bool // it was never synced
		want       Obstacle
	}{
		{name: "nothing, as a rule", spec: "{refreshInterval: 1h}"},
		{name: "a policy by which it is read once", spec: "{refreshPolicy: CreatedOnce, refreshInterval: 1h}", want: CreatedOnce},
		{name: "not that policy while it was not", spec: "{refreshPolicy: CreatedOnce}", never: true},
		{name: "an interval of zero", spec: "{refreshInterval: 0s}", want: NoInterval},
		{name: "not that interval where changes have it read", spec: "{refreshPolicy: OnChange, refreshInterval: 0s}"},
		{name: "a generator", spec: "{dataFrom: [{sourceRef: {generatorRef: {kind: Password, name: p}}}]}", want: Generates},
		{name: "a Secret that it makes immutable", spec: "{target: {immutable: true}}", want: Immutable},
		{name: "not while there is no such Secret", spec: "{target: {immutable: true}}", never: true},
		{name: "not where it writes another kind", spec: "{target: {immutable: true, manifest: {apiVersion: v1, kind: ConfigMap}}}"},
		{name: "a policy by which it writes nothing", spec: "{target: {creationPolicy: None}}", never: true, want: NoTarget},
		{name: "that policy where it would write another kind", spec: "{target: {creationPolicy: None, manifest: {apiVersion: v1, kind: ConfigMap}}}", want: NoTarget},
	} {
		t.Run(test.name, func(t *testing.T) {
			es := externalSecretOf(t, test.spec)
			if !test.never {
				es.SyncedVersion = "1-abc"
			}
			if got := es.Obstacle(); got != test.want || len(es.Problems) > 0 {
				t.Errorf("got %v, want %v; problems: %v", got, test.want, es.Problems)
			}
		})
	}
}

func TestAnExternalSecretThatIsNotOneReadsNothing(t *testing.T) {
	es := Read(object(t, "metadata: {name: db, namespace: shop}\nspec: {data: 5}"))
	if len(es.Problems) != 1 || es.Name != "db" || len(es.Stores()) != 0 {
		t.Errorf("got %+v", es)
	}
}

const testTraceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestParseForceSync(t *testing.T) {
	const event = "bao/root/secret/shop/db@eu/7"
	for _, test := range []struct {
		name, value string
		want        ForceSync
		ok          bool
	}{
		{"of an event with a trace", event + "@" + testTraceparent, ForceSync{Event: event, Traceparent: testTraceparent}, true},
		{"for the second time again", event + "-r2@" + testTraceparent, ForceSync{event, 2, testTraceparent}, true},
		{"of one whose path has a line end", "bao/root/a\nb/1@", ForceSync{Event: "bao/root/a\nb/1"}, true},
		{"the time, as the documentation of the operator has it", "1763752800", ForceSync{}, false},
		{"no trace behind the last at-sign", event + "@" + testTraceparent + "0", ForceSync{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := ParseForceSync(test.value)
			if got != test.want || ok != test.ok {
				t.Errorf("got %+v, %t, want %+v, %t", got, ok, test.want, test.ok)
			}
			if ok && got.String() != test.value {
				t.Errorf("it is written as %q, want %q", got, test.value)
			}
		})
	}
}

func FuzzParseForceSync(f *testing.F) {
	f.Add("bao/root/secret/shop/db/7-r1@" + testTraceparent)
	f.Add("a-r1-r2@")
	f.Fuzz(func(t *testing.T, value string) {
		if got, ok := ParseForceSync(value); ok && got.String() != value {
			t.Errorf("%q is written as %q", value, got)
		}
	})
}

// Anyone who may write an ExternalSecret or a store controls its content.
func FuzzRead(f *testing.F) {
	f.Add(`{"metadata":{"name":"db","namespace":"shop"},"spec":{"secretStoreRef":{"name":"bao"},"data":[{"remoteRef":{"key":"shop/db","version":"1"}}]}}`,
		`{"metadata":{"name":"bao","namespace":"shop"},"spec":{"provider":{"vault":{"server":"https://bao","path":"secret"}}}}`)
	f.Add(`{"metadata":{"namespace":"shop"},"spec":{"refreshInterval":"x","dataFrom":[{"find":{"path":"/","name":{"regexp":"(["}}},{"extract":{"key":"/data/"}}]}}`,
		`{"metadata":{"name":""},"spec":{"provider":{"openBao":{"server":"%zz"}},"conditions":[{"namespaceRegexes":["("]}]}}`)
	f.Add(`{"metadata":{"annotations":5,"ownerReferences":[{"controller":true}]},"status":{"conditions":[{}],"refreshTime":null}}`, `{"spec":{"provider":null}}`)
	f.Add(`{"spec":{"secretStoreRef":{"name":"bao"},"dataFrom":[{"find":{"name":{"regexp":"(?:x{100}){10}"}}},{"find":{"name":{"regexp":"\\pL{1000}"}}}]}}`,
		`{"spec":{"provider":{"vault":{"server":"https://bao","path":"secret"}},"conditions":[{"namespaceRegexes":["((a{100}){10}){10}"]}]}}`)
	f.Add(`{"spec":{"target":{"template":{"data":{"a":"{{ htpasswd .u \"}}\" }} {{/* "},"templateFrom":[{"literal":"{{ .now | x.now"},{}]}}}}`, `{}`)
	rotation, _ := RotationOf(rotated(shopDB, nil))
	f.Fuzz(func(t *testing.T, text, storeText string) {
		obj, storeObj := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if json.Unmarshal([]byte(text), &obj.Object) != nil || json.Unmarshal([]byte(storeText), &storeObj.Object) != nil {
			t.Skip("the API server gives objects")
		}
		es, store := Read(obj), ReadStore(storeObj)
		_ = ReadCluster(obj)
		stores := func(types.NamespacedName) *Store { return store }
		if es.Unsteady != "" && !unsteady[es.Unsteady] {
			t.Errorf("%q is no function", es.Unsteady)
		}
		found, _ := es.Reads(stores, rotation)
		_ = es.Obstacle()
		for _, place := range es.Places(stores) {
			if place.Path.Mount == "" || place.Path.Namespace == "" || !place.Below && place.Path.Path == "" {
				t.Errorf("the place %+v is nowhere", place)
			}
		}
		if found && len(es.Stores()) == 0 {
			t.Error("it reads a secret from no store")
		}
	})
}
