package actuate

import (
	"encoding/json"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

var deploymentResource = schema.GroupResource{Group: "apps", Resource: "deployments"}

// webDeployment is a Deployment that rolls on db, at a resourceVersion.
func webDeployment(version string, annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "w", ResourceVersion: version, Annotations: annotations},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}}},
		}}}}},
	}
}

// recording is a patch of web that only records.
func recording(t *testing.T) *roll {
	t.Helper()
	w, ok := workload.Read(deployments, webDeployment("50", rollOn("auto")), false)
	if !ok {
		t.Fatal("no workload")
	}
	w.TemplateVersion = "200"
	r := rollOf(t, deployments, w, db)
	if r.rolls {
		t.Fatal("it rolls")
	}
	return r
}

func TestAPatchIsSentAndItsAnswerIsKnownAtOnce(t *testing.T) {
	client := fake.NewClientset(webDeployment("50", rollOn("auto")))
	client.PrependReactor("patch", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		var patch struct {
			Metadata struct{ Annotations map[string]string }
		}
		sent, ok := action.(k8stesting.PatchActionImpl)
		if !ok || sent.PatchType != types.MergePatchType || sent.PatchOptions.FieldManager != "keyturn" {
			t.Errorf("sent was %+v, want a merge patch of the field manager keyturn", action)
		}
		if err := json.Unmarshal(sent.Patch, &patch); err != nil {
			t.Error(err)
		}
		patch.Metadata.Annotations[workload.AnnotationRollOn] = "auto"
		return true, webDeployment("60", patch.Metadata.Annotations), nil
	})
	options := testOptions()
	options.Client = client
	r := recording(t)
	e := engineOf(t, options, r.workload)
	result := e.patcher.apply(t.Context(), r)
	if result.err != nil {
		t.Fatal(result.err)
	}
	if result.started.Verb != "" {
		t.Errorf("a patch that rolls nothing is told as %s", result.started.Verb)
	}
	w := e.index.get(r.workload.Key())
	if w.Version != "60" || w.Rolled["secret/db"].Version != "100" {
		t.Errorf("the index has version %s and the record %v", w.Version, w.Rolled)
	}
	if again := plan.Decide(w, changeOf(nil), nil); again.Reason != plan.AlreadyRolled {
		t.Errorf("the same change again: got %s", again.Reason)
	}
}

func TestAPatchThatIsRefusedSaysWhatItWasOf(t *testing.T) {
	client := fake.NewClientset()
	options := testOptions()
	options.Client = client
	r := recording(t)
	e := engineOf(t, options, r.workload)
	result := e.patcher.apply(t.Context(), r)
	if !apierrors.IsNotFound(result.err) || result.denied || result.after != nil {
		t.Errorf("a workload that is gone: %+v", result)
	}
	client.PrependReactor("patch", "deployments", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewBadRequest("no")
	})
	result = e.patcher.apply(t.Context(), r)
	const want = "patching deployment/web in namespace shop: no"
	if result.err == nil || result.err.Error() != want || !result.denied {
		t.Errorf("a patch that is not understood: error %v (denied: %t), want %q", result.err, result.denied, want)
	}
	if w := e.index.get(r.workload.Key()); w.Version != "50" {
		t.Errorf("the index has version %s", w.Version)
	}
}

func TestAFailedPatchIsTriedAgainLaterAndLater(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	e := engineOf(t, testOptions(), w)
	r := &roll{kind: deployments, workload: w, pending: e.pend(w, changeOf(nil))}
	e.queue.drop(r.pending)
	for attempt, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		e.retry(t.Context(), r, errors.New("no"))
		due, ok := e.queue.next()
		if got := due.Sub(written).Seconds(); !ok || got != float64(want) {
			t.Errorf("after attempt %d it is tried again in %gs, want %ds", attempt+1, got, want)
		}
		r.pending = e.queue.pop(due)
		e.queue.drop(r.pending)
	}
}

func TestAFailedPatchIsTriedAgainWithWhatCameSince(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, nil)
	e := engineOf(t, testOptions(), w)
	before := changeOf(func(c *events.Change) { c.ResourceVersion = "90" })
	older := e.pend(w, changeOf(nil))
	older.claims[db].from = &before
	older.claims[db].tickets = []*ticket{ticketOf(t, changeOf(nil))}
	older.claims[app] = &claim{change: changeOf(func(c *events.Change) { c.Source = app })}
	e.queue.drop(older)

	later := changeOf(func(c *events.Change) { c.ResourceVersion = "110" })
	newest := e.pend(w, later)
	newest.claims[db].from = &older.claims[db].change
	newest.claims[db].tickets = []*ticket{ticketOf(t, later)}
	e.retry(t.Context(), &roll{kind: deployments, workload: w, pending: older}, errors.New("no"))

	due, _ := e.queue.next()
	p := e.queue.pop(due)
	if p != newest || e.queue.pop(due) != nil {
		t.Fatalf("%d entries wait, want the newest alone", len(e.queue.byKey))
	}
	c := p.claims[db]
	if len(p.claims) != 2 || c.change.ResourceVersion != "110" || c.from != nil || len(c.tickets) != 2 ||
		c.newest().delivery.Change.ResourceVersion != "110" || p.attempts != 1 {
		t.Errorf("it is tried again with %+v of %d sources, attempt %d; want the last change, from what is not known, and both tickets",
			c, len(p.claims), p.attempts)
	}
}
