//go:build !race

package actuate_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/tests/testkit"
)

// syncs has the next actuators sync the ExternalSecret db, which reads a secret in a store, with a template. There is no operator that does.
func (s *scene) syncs(template ...any) *dynamicfake.FakeDynamicClient {
	s.Helper()
	store := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": externalsecret.APIVersion, "kind": "SecretStore",
		"metadata": map[string]any{"name": "bao", "namespace": namespace, "uid": "uid-bao", "resourceVersion": "1"},
		"spec":     map[string]any{"provider": map[string]any{"vault": map[string]any{"server": "https://bao", "path": "secret"}}},
	}}
	reading := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": externalsecret.APIVersion, "kind": "ExternalSecret",
		"metadata": map[string]any{"name": "db", "namespace": namespace, "uid": "uid-db", "resourceVersion": "1"},
		"spec": map[string]any{
			"secretStoreRef": map[string]any{"name": "bao"},
			"data":           []any{map[string]any{"remoteRef": map[string]any{"key": "shop/db"}}},
			"target":         map[string]any{"template": map[string]any{"templateFrom": template}},
		},
		"status": map[string]any{"syncedResourceVersion": "1-1", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		externalsecret.ExternalSecrets:        "ExternalSecretList",
		externalsecret.SecretStores:           "SecretStoreList",
		externalsecret.ClusterSecretStores:    "ClusterSecretStoreList",
		externalsecret.ClusterExternalSecrets: "ClusterExternalSecretList",
	}, store, reading)
	client.PrependReactor("patch", "externalsecrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
		request, ok := action.(k8stesting.PatchAction)
		if !ok {
			return false, nil, nil
		}
		found, err := client.Tracker().Get(request.GetResource(), request.GetNamespace(), request.GetName())
		if err != nil {
			return true, nil, err
		}
		var body struct{ Metadata metav1.ObjectMeta }
		if err := json.Unmarshal(request.GetPatch(), &body); err != nil {
			return true, nil, err
		}
		object := found.DeepCopyObject()
		metaOf(object).SetAnnotations(body.Metadata.Annotations)
		metaOf(object).SetResourceVersion(s.nextVersion())
		return true, object, client.Tracker().Update(request.GetResource(), object, request.GetNamespace())
	})
	s.options.ForceSync, s.options.Dynamic = true, client
	return client
}

// rotated is a new version of the secret that db reads.
func rotated(version int64) events.Change {
	revision := strconv.FormatInt(version, 10)
	return events.Change{
		Cluster: "demo", Source: events.StorePath{Store: "main", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}.Source(),
		Verb: events.VerbRotated, UID: "main", ResourceVersion: "100" + revision, ChangedAt: "1", Fingerprint: "k0a1b2c3d:" + strings.Repeat(revision, 32),
		Time: time.Now(), Trace: events.TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		Store: &events.StoreState{Servers: []string{"https://bao"}, Engine: events.EngineKV, Version: version, Revision: revision, Operation: "update"},
	}
}

func TestTheForceSyncReportsThroughTheActuator(t *testing.T) {
	play(t, func(s *scene) {
		s.syncs()
		s.startFor(time.Minute)
		s.send(rotated(2))
		s.pass(4 * time.Minute)
		s.wantTold()
		s.pass(2 * time.Minute)
		s.wantTold("externalsecret/db failed timed-out")
		written := s.kubernetesEvents()
		if len(written) != 1 {
			t.Fatalf("%d Kubernetes Events were written, want one", len(written))
		}
		event := written[0]
		about := event.InvolvedObject
		if about.Kind != "ExternalSecret" || about.APIVersion != externalsecret.APIVersion || about.Name != "db" || about.UID != "uid-db" {
			t.Errorf("the Kubernetes Event is about %+v", about)
		}
		if event.Type != "Warning" || event.Reason != "SyncFailed" || !strings.HasPrefix(event.Message, "timed-out: ") {
			t.Errorf("it is a %s %s: %s", event.Type, event.Reason, event.Message)
		}
	})
}

func TestASyncForAChangeWhileNobodyLedIsTakenUpByTheNextLeader(t *testing.T) {
	play(t, func(s *scene) {
		s.syncs()
		first := s.start()
		s.pass(time.Minute)
		first.stop()
		s.send(rotated(2))
		s.startFor(6 * time.Minute)
		s.wantTold("externalsecret/db failed timed-out")
	})
}

func TestTheReadersOfASecretAreRolledOnceAfterItsTemplateHasChanged(t *testing.T) {
	play(t, func(s *scene) {
		objects := s.syncs(map[string]any{"configMap": map[string]any{"name": "page"}}).Resource(externalsecret.ExternalSecrets).Namespace(namespace)
		s.workload("web", auto, reads("secret/db"))
		s.begin("secret/db", "configmap/page")
		s.settled("configmap/page", "url", "new")
		s.wantRolls()
		found, err := objects.Get(s.Context(), "db", metav1.GetOptions{})
		testkit.Must(t, err)
		forced, _ := externalsecret.ParseForceSync(found.GetAnnotations()[externalsecret.AnnotationForceSync])
		if want := s.of("configmap/page").published.ID(); forced.Event != want {
			t.Fatalf("asked to sync for %q, want %q", forced.Event, want)
		}
		testkit.Must(t, unstructured.SetNestedField(found.Object, "1-2", "status", "syncedResourceVersion"))
		found.SetResourceVersion(s.nextVersion())
		if _, err := objects.Update(s.Context(), found, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.set("secret/db", "password", "in the new template")
		s.pass(time.Minute)
		s.wantRolls("web")
		s.wantAmongTold("externalsecret/db completed synced")
	})
}
