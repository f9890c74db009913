package kinds

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/reloader"
)

func TestReduceKeepsFingerprintsOfAPodStatus(t *testing.T) {
	pod := mountedPod{uid: "p1", version: "1", generation: 2, resourceVersion: 5}
	now := heededOf(t, podStatusKind{}, keyringOf(1), reloader.Annotations{}, pod.status(t, "web-0"))
	if want := (podStatus{class: classOfPlay, pod: "p1", rewritten: true}); *now.podStatus() != want {
		t.Errorf("got %+v, want %+v", *now.podStatus(), want)
	}
	if len(now.fingerprints) != 1 || now.fingerprints[0].keys != nil || now.UID != "s-web-0" || now.ResourceVersion != "5" {
		t.Errorf("got %+v", now)
	}
	texts(reflect.ValueOf(now), func(text string) {
		if strings.Contains(text, canary) {
			t.Errorf("it keeps %q", text)
		}
	})
	if found := cacheOf(now).podStatuses(classOfPlay); len(found) != 1 || found[0] != now {
		t.Errorf("%d statuses are found by the class, want this one", len(found))
	}
	if key, err := cache.MetaNamespaceKeyFunc(now); err != nil || key != "shop/web-0-shop-db" {
		t.Errorf("a reflector calls it %q: %v", key, err)
	}
}

func TestTheContentOfAPod(t *testing.T) {
	content := func(status string) string {
		now := newPodStatus(keyringOf(1), customOf(t, `{"metadata": {"namespace": "shop", "name": "x"}, "status": `+status+`}`))
		if now.fingerprints == nil {
			return nothing
		}
		return now.fingerprints[0].all.Text("")
	}
	mounted := func(objects string) string {
		return `{"mounted": true, "secretProviderClassName": "db", "podName": "a", "objects": ` + objects + `}`
	}
	one := content(mounted(`[{"id": "a", "version": "1"}, {"id": "b", "version": "2"}]`))
	for _, tt := range []struct {
		name, status string
		same, none   bool
	}{
		{
			name:   "is that of another pod with the same versions",
			status: strings.Replace(mounted(`[{"id": "a", "version": "1"}, {"id": "b", "version": "2"}]`), `"podName": "a"`, `"podName": "b"`, 1), same: true,
		},
		{name: "does not depend on the order", status: mounted(`[{"id": "b", "version": "2"}, {"id": "a", "version": "1"}]`), same: true},
		{name: "is another with another version", status: mounted(`[{"id": "a", "version": "1"}, {"id": "b", "version": "3"}]`)},
		{name: "is another if the parts are joined in another way", status: mounted(`[{"id": "a1", "version": ""}, {"id": "b", "version": "2"}]`)},
		{name: "is none before anything is mounted", status: strings.Replace(mounted(`[{"id": "a"}]`), "true", "false", 1), none: true},
		{name: "is none if no object has a version", status: mounted(`[{"id": "a", "version": ""}, {"id": "b"}]`), none: true},
		{name: "is none if it cannot be read", status: `{"objects": {}}`, none: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := content(tt.status)
			if tt.none != (got == nothing) || tt.same != (got == one) {
				t.Errorf("got %s, the first is %s", got, one)
			}
		})
	}
}

// What comes from the API server was checked against the schema of whichever version of the driver is installed.
func FuzzReduceSecretProviderClasses(f *testing.F) {
	f.Add([]byte(`{"metadata": {"name": "a", "namespace": "b", "generation": 2, "ownerReferences": [{"kind": "Pod", "uid": "u"}]},
		"status": {"secretProviderClassName": "db", "mounted": true, "objects": [{"id": "a", "version": "1"}]}}`))
	f.Add([]byte(`{"metadata": {"name": 1, "annotations": {"a": 1}, "ownerReferences": [1]}, "status": {"objects": [null, {"id": 1}]}}`))
	f.Add([]byte(`{"status": []}`))
	f.Add([]byte(`{"metadata": {"name": "db", "namespace": "b", "generation": 1, "annotations": {"reloader.stakater.com/ignore": "true"}},
		"spec": {"provider": "vault", "parameters": {"objects": "- a"}, "secretObjects": [{"secretName": "s"}]}}`))
	f.Add([]byte(`{"metadata": {"name": "a-b-db", "namespace": "b", "ownerReferences": [{"kind": "Node"}, {"kind": "Pod", "uid": ""}]},
		"status": {"podName": "a", "secretProviderClassName": "../db", "mounted": false,
		"objects": [{"id": "a", "version": "1"}, {"id": "a", "version": "2"}, {"id": "", "version": ""}]}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		resource := &unstructured.Unstructured{}
		if err := json.Unmarshal(content, &resource.Object); err != nil {
			return
		}
		for _, kind := range []Listed{secretProviderClassKind{}, podStatusKind{}} {
			class := heededOf(t, kind, keyringOf(1), reloader.Default(), resource).About()
			if class.Name != "" && (class.Kind != events.KindSecretProviderClass || kind.Listing().Kind == kindPodStatus && len(class.Name) > maxStatus) {
				t.Errorf("it is about %+v", class)
			}
		}
	})
}
