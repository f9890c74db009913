package actuate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/forcesync"
)

const (
	syncedSecret = "{metadata: {name: db, namespace: shop, uid: u}, spec: {secretStoreRef: {name: bao}, data: [{remoteRef: {key: shop/db}}]}, " +
		"status: {syncedResourceVersion: 1-1, conditions: [{type: Ready, status: 'True'}]}}"
	syncedStore = "{metadata: {name: bao, namespace: shop, uid: s}, spec: {provider: {vault: {server: 'https://bao', path: secret}}}}"
)

// custom returns an object of External Secrets Operator.
func custom(t *testing.T, kind, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.SetResourceVersion("1")
	obj.SetAPIVersion(externalsecret.APIVersion)
	obj.SetKind(kind)
	return obj
}

// dynamicOf returns a client for the objects.
func dynamicOf(objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		externalsecret.ExternalSecrets:        "ExternalSecretList",
		externalsecret.SecretStores:           "SecretStoreList",
		externalsecret.ClusterSecretStores:    "ClusterSecretStoreList",
		externalsecret.ClusterExternalSecrets: "ClusterExternalSecretList",
	}, objects...)
}

// rotationOfDB returns the event of a version that was written to the path that syncedSecret reads.
func rotationOfDB() events.Change {
	return events.Change{
		Cluster: "demo", Source: events.StorePath{Store: "main", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}.Source(),
		Verb: events.VerbRotated, UID: "main", ResourceVersion: "1002", ChangedAt: "1", Fingerprint: fp("a"),
		Time: time.Now(), Trace: events.TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		Store: &events.StoreState{Servers: []string{"https://bao"}, Engine: events.EngineKV, Version: 2, Revision: "2", Operation: "update"},
	}
}

// syncAtOnce makes the API server take patches of ExternalSecrets, and the operator sync at once.
func syncAtOnce(c *cluster, client *dynamicfake.FakeDynamicClient) {
	client.PrependReactor("patch", "externalsecrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
		patch, ok := action.(k8stesting.PatchAction)
		if !ok {
			return false, nil, nil
		}
		found, err := client.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
		if err != nil {
			return true, nil, err
		}
		var body struct{ Metadata metav1.ObjectMeta }
		patched, isObject := found.DeepCopyObject().(*unstructured.Unstructured)
		if err := json.Unmarshal(patch.GetPatch(), &body); err != nil || !isObject {
			return true, nil, apierrors.NewBadRequest(fmt.Sprint(err))
		}
		patched.SetAnnotations(body.Metadata.Annotations)
		patched.SetResourceVersion(c.next())
		synced := patched.DeepCopy()
		synced.SetResourceVersion(c.next())
		synced.Object["status"] = map[string]any{
			"syncedResourceVersion": "1-" + synced.GetResourceVersion(),
			"conditions":            []any{map[string]any{"type": "Ready", "status": "True"}},
		}
		return true, patched, client.Tracker().Update(patch.GetResource(), synced, patch.GetNamespace())
	})
}

func TestAnActuatorSyncsWhatReadsASecretInAStoreInOneTrace(t *testing.T) {
	c := newCluster(t)
	client := dynamicOf(custom(t, "ExternalSecret", syncedSecret), custom(t, "SecretStore", syncedStore))
	syncAtOnce(c, client)
	spans := tracetest.NewSpanRecorder()
	options := c.options()
	options.ForceSync, options.Dynamic = true, client
	options.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("")
	_, stop := c.start(options)

	rotated := rotationOfDB()
	mustPublish(t, c.bus, rotated, 0)
	c.eventually("it was asked", func() bool {
		return slices.ContainsFunc(client.Actions(), func(action k8stesting.Action) bool { return action.GetVerb() == "patch" })
	})
	c.publish(0, nil) // what the watcher reports about the Secret that the sync wrote
	subject := events.OutcomeSubject("demo", events.Workload{Kind: forcesync.Kind, Namespace: "shop", Name: "db"})
	c.eventually("the sync is reported as completed", func() bool {
		stored, err := c.bus.Last(t.Context(), subject)
		if err != nil {
			return false
		}
		outcome, err := stored.Outcome()
		return err == nil && outcome.Verb == events.VerbCompleted && outcome.Reason == "synced" && outcome.Cause == rotated.ID()
	})
	stop()

	processing := trace.SpanID{}
	byName := make(map[string]sdktrace.ReadOnlySpan)
	for _, span := range spans.Ended() {
		if span.SpanContext().TraceID().String() == rotated.Trace.Parent[3:35] {
			byName[span.Name()] = span
			if span.SpanKind() == trace.SpanKindConsumer {
				processing = span.SpanContext().SpanID()
			}
		}
	}
	for _, name := range []string{"force-sync externalsecret", "wait for sync"} {
		if span := byName[name]; span == nil || span.Parent().SpanID() != processing {
			t.Errorf("the trace of the rotation has no span %q below its processing", name)
		}
	}
}

func TestTheForceSyncReportsThroughTheActuator(t *testing.T) {
	l, options := loopOf(t, testOptions()), testOptions()
	reporter := l.concluder.reporter
	host := syncHost(options, options.Logger, l.concluder.metrics, reporter)
	outcome := events.Outcome{Workload: events.Workload{Kind: forcesync.Kind, Namespace: "shop", Name: "db", UID: "u"}}
	host.Publish(outcome)
	if len(l.outbox.waiting) != 1 {
		t.Errorf("%d outcomes wait, want 1", len(l.outbox.waiting))
	}
	host.Warn(t.Context(), outcome, "SyncFailed", "in vain")
	event := reporter.kube.waiting()
	about := event.InvolvedObject
	if about.Kind != "ExternalSecret" || about.APIVersion != externalsecret.APIVersion || about.Name != "db" || string(about.UID) != "u" {
		t.Errorf("the Kubernetes Event is about %+v", about)
	}
	if event.Type != "Warning" || event.Reason != "SyncFailed" || event.Message != "in vain" {
		t.Errorf("it is a %s %s: %s", event.Type, event.Reason, event.Message)
	}
}

func TestAnEventIsSettledAfterItsLastSync(t *testing.T) {
	event, inFlight := eventOf(changeOf(nil)), loopOf(t, testOptions()).inFlight
	var settled []error
	inFlight.done = func(_ *events.Delivery, _ context.Context, err error) { settled = append(settled, err) }
	synced := heldEvent{event, inFlight}
	synced.Hold()
	synced.Hold()
	denied := errors.New("denied")
	synced.Release(t.Context(), denied)
	if len(settled) != 0 {
		t.Error("it is settled before its last sync")
	}
	synced.Release(t.Context(), nil)
	if len(settled) != 1 || !errors.Is(settled[0], denied) {
		t.Errorf("it is settled with %v, want once, with the denial", settled)
	}
}
