package install

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/rights"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// substituting is a Kustomization that puts the password of secret/db into a ConfigMap, and looks again once an hour.
const substituting = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app, namespace: NAMESPACE}
spec: {interval: 1h, url: URL, ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: NAMESPACE, annotations: {keyturn.dev/roll-on: auto}}
spec:
  interval: 1h
  prune: true
  targetNamespace: NAMESPACE
  sourceRef: {kind: GitRepository, name: app}
  postBuild: {substituteFrom: [{kind: Secret, name: db}]}
`

func TestFluxReconcilesAKustomizationWhenWhatItSubstitutesChanges(t *testing.T) {
	t.Parallel()
	repository := testbed.NewRepository(t, "app")
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {password: '${password}'}\n"
	testkit.WriteFile(t, filepath.Join(repository.Dir, "applied.yaml"), manifest)
	if _, err := repository.Commit(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, scene{
		prepare: func(b *bench) {
			b.secret("db", "one")
			manifests := strings.NewReplacer("NAMESPACE", b.namespace, "URL", repository.URL).Replace(substituting)
			apply(b.T, manifests)
			b.args[rights.WatcherAccount] = []string{"--namespaces", b.namespace}
			b.args[rights.ActuatorAccount] = []string{"--targets-config", "../../deploy/targets/flux-kustomize/flux-kustomize.yaml"}
		},
		change: func(b *bench) {
			testkit.Await(b.T, "the watcher knows the Secret, and Flux has applied it", func(ctx context.Context) bool {
				return b.isTold(events.Source{Kind: events.KindSecret, Namespace: b.namespace, Name: "db"}) && b.leads() && b.applied(ctx) == "one"
			})
			b.secret("db", "two")
		},
	}, rights.GrantsOf(t, "base/rbac.yaml", "targets/flux-kustomize/rbac.yaml"), "")
	b.run()
	testkit.Await(t, "Flux applies what the Secret has", func(ctx context.Context) bool { return b.applied(ctx) == "two" })
	stream, err := bus.Open(t.Context(), b.connection, benchCluster, nil)
	testkit.Must(t, err)
	query := bus.HistoryQuery{Clusters: []string{benchCluster}, Kind: events.KindRollout, Namespace: b.namespace, Name: "kustomization-app"}
	// told returns how many outcomes of each verb there are, and nothing if they could not be read.
	told := func(ctx context.Context) map[events.Verb]int {
		verbs := map[events.Verb]int{}
		err := stream.History(ctx, query, func(stored events.Stored) error {
			outcome, err := stored.Outcome()
			verbs[outcome.Verb]++
			return err
		})
		if err != nil {
			return nil
		}
		return verbs
	}
	testkit.Await(t, "the rollout is complete", func(ctx context.Context) bool { return told(ctx)[events.VerbCompleted] == 1 })

	// Somebody has Flux reconcile it, as `flux reconcile` does. Nothing is rolled for that, nor for what Flux writes then.
	resource := schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	kustomizations := dynamic.NewForConfigOrDie(plane.Config()).Resource(resource).Namespace(b.namespace)
	asked := time.Now().Add(time.Second).UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, asked)
	if _, err := kustomizations.Patch(t.Context(), "app", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "Flux has reconciled it", func(ctx context.Context) bool {
		object, err := kustomizations.Get(ctx, "app", metav1.GetOptions{})
		if err != nil {
			return false
		}
		handled, _, _ := unstructured.NestedString(object.Object, "status", "lastHandledReconcileAt")
		return handled == asked
	})
	b.secret("db", "three")
	testkit.Await(t, "the rollout of the next change is complete", func(ctx context.Context) bool { return told(ctx)[events.VerbCompleted] == 2 })
	if got := b.applied(t.Context()); got != "three" {
		t.Errorf("when it is complete Flux has applied %q, want three", got)
	}
	var got map[events.Verb]int
	testkit.Await(t, "the outcomes are read", func(ctx context.Context) bool {
		got = told(ctx)
		return got != nil
	})
	testkit.WantEqual(t, "the outcomes of two changes", map[events.Verb]int{events.VerbStarted: 2, events.VerbCompleted: 2}, got)
}

// applied returns what Flux has put into the ConfigMap, empty if there is none.
func (b *bench) applied(ctx context.Context) string {
	config, err := b.kube.CoreV1().ConfigMaps(b.namespace).Get(ctx, "applied", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return config.Data["password"]
}
