//go:build !race

package actuate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// externalSecrets are ExternalSecrets that read one secret in a store, and the operator that syncs them.
type externalSecrets struct {
	*dynamicfake.FakeDynamicClient
	s *scene

	mu sync.Mutex
	// denied are those whose patches the API server denies, and ignored those that the operator never gets to.
	denied, ignored map[string]bool
}

// syncs has the next actuators sync ExternalSecrets with these names, which the operator has synced before.
func (s *scene) syncs(names ...string) *externalSecrets {
	s.Helper()
	objects := []runtime.Object{&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": externalsecret.APIVersion, "kind": "SecretStore",
		"metadata": map[string]any{"name": "bao", "namespace": namespace, "uid": "uid-bao", "resourceVersion": "1"},
		"spec":     map[string]any{"provider": map[string]any{"vault": map[string]any{"server": "https://bao", "path": "secret"}}},
	}}}
	for _, name := range names {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": externalsecret.APIVersion, "kind": "ExternalSecret",
			"metadata": map[string]any{"name": name, "namespace": namespace, "uid": "uid-" + name, "resourceVersion": "1"},
			"spec": map[string]any{
				"secretStoreRef": map[string]any{"name": "bao"},
				"data":           []any{map[string]any{"remoteRef": map[string]any{"key": "shop/db"}}},
			},
			"status": map[string]any{
				"syncedResourceVersion": "1-1", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
			},
		}})
	}
	x := &externalSecrets{s: s, denied: make(map[string]bool), ignored: make(map[string]bool)}
	x.FakeDynamicClient = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		externalsecret.ExternalSecrets:        "ExternalSecretList",
		externalsecret.SecretStores:           "SecretStoreList",
		externalsecret.ClusterSecretStores:    "ClusterSecretStoreList",
		externalsecret.ClusterExternalSecrets: "ClusterExternalSecretList",
	}, objects...)
	x.PrependReactor("patch", "externalsecrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
		request, ok := action.(k8stesting.PatchAction)
		if !ok {
			return false, nil, nil
		}
		answer, err := x.patch(request)
		return true, answer, err
	})
	s.options.ForceSync, s.options.Dynamic = true, x
	return x
}

// patch answers a patch, after which the operator syncs at once.
func (x *externalSecrets) patch(request k8stesting.PatchAction) (runtime.Object, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	resource, name := request.GetResource(), request.GetName()
	if x.denied[name] {
		return nil, apierrors.NewForbidden(resource.GroupResource(), name, errors.New("policy denied request: no"))
	}
	found, err := x.Tracker().Get(resource, request.GetNamespace(), name)
	if err != nil {
		return nil, err
	}
	object, ok := found.DeepCopyObject().(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("it is a %T", found)
	}
	var body struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(request.GetPatch(), &body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	object.SetAnnotations(body.Metadata.Annotations)
	object.SetResourceVersion(x.s.nextVersion())
	synced := object.DeepCopy()
	if !x.ignored[name] {
		synced.SetResourceVersion(x.s.nextVersion())
		synced.Object["status"] = map[string]any{
			"syncedResourceVersion": "1-" + synced.GetResourceVersion(), "refreshTime": time.Now().UTC().Format(time.RFC3339),
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		}
	}
	return object, x.Tracker().Update(resource, synced, request.GetNamespace())
}

// deny lets the API server deny patches of an ExternalSecret, or accept them.
func (x *externalSecrets) deny(name string, denied bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.denied[name] = denied
}

// template has the template of an ExternalSecret name a ConfigMap.
func (x *externalSecrets) template(name, configMap string) {
	x.s.Helper()
	found, err := x.Tracker().Get(externalsecret.ExternalSecrets, namespace, name)
	if err != nil {
		x.s.Fatal(err)
	}
	object, ok := found.(*unstructured.Unstructured)
	if !ok {
		x.s.Fatalf("it is a %T", found)
	}
	from := []any{map[string]any{"configMap": map[string]any{"name": configMap, "items": []any{}}}}
	if err := unstructured.SetNestedSlice(object.Object, from, "spec", "target", "template", "templateFrom"); err != nil {
		x.s.Fatal(err)
	}
	if err := x.Tracker().Update(externalsecret.ExternalSecrets, object, namespace); err != nil {
		x.s.Fatal(err)
	}
}

// rotated is a new version of the secret that they read.
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
		s.syncs("db").ignored["db"] = true
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

// The operator has not synced it since the change, whoever asked it to.
func TestASyncThatNobodyHasFinishedIsTakenUpByTheNextLeader(t *testing.T) {
	tests := []struct {
		name string
		// ends is how the first leader ends, so that the operator is not asked.
		ends func(s *scene, first *running, secrets *externalSecrets)
	}{
		{"because nobody led", func(s *scene, first *running, _ *externalSecrets) {
			first.stop()
			s.send(rotated(2))
		}},
		{"because the leader died", func(s *scene, first *running, secrets *externalSecrets) {
			secrets.deny("db", true)
			s.send(rotated(2))
			s.pass(5 * time.Second)
			first.kill()
			secrets.deny("db", false)
		}},
	}
	for _, test := range tests {
		playOf(t, test.name, func(s *scene) {
			secrets := s.syncs("db")
			first := s.start()
			s.pass(time.Minute)
			test.ends(s, first, secrets)
			s.wantTold()
			s.startFor(time.Second)
			s.set("secret/db", "password", "two") // The sync has written it.
			s.pass(time.Minute)
			s.wantTold("externalsecret/db completed synced")
			s.restartFor(time.Hour)
			s.wantTold()
		})
	}
}
