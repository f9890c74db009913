package actuate

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
)

// syncAtOnce has the API server take patches of ExternalSecrets, and the operator sync at once.
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
	b := newIndexBed(t)
	client := dynamicOf(custom(b, "ExternalSecret", watchedSecret), custom(b, "SecretStore", watchedStore))
	syncAtOnce(c, client)
	spans := tracetest.NewSpanRecorder()
	options := c.options()
	options.ForceSync, options.Dynamic = true, client
	options.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("")
	_, stop := c.start(options)

	rotated := rotation("shop/db", 2, nil)
	if _, err := c.bus.PublishChange(t.Context(), rotated, 0); err != nil {
		t.Fatal(err)
	}
	c.eventually("it was asked", func() bool {
		return slices.ContainsFunc(client.Actions(), func(action k8stesting.Action) bool { return action.GetVerb() == "patch" })
	})
	c.publish(0, nil) // what the watcher says of the Secret that the sync wrote
	subject := events.OutcomeSubject("demo", events.Workload{Kind: kindExternalSecret, Namespace: "shop", Name: "db"})
	c.eventually("it is told", func() bool {
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
