package actuate

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// An admission policy that knows nothing of the count may still be there, from before an update.
func TestARollThatMayNotBeCountedIsMadeWithoutTheCount(t *testing.T) {
	const most = 2
	c := newStreamless(t, deploymentOf("web", "db", rollOn("auto")))
	refused := 0
	c.client.PrependReactor("patch", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		patch, ok := action.(k8stesting.PatchAction)
		if !ok || !bytes.Contains(patch.GetPatch(), []byte("keyturn.dev~1rolls")) {
			return false, nil, nil
		}
		refused++
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("denied by a policy"))
	})
	now, options := time.Now().Truncate(time.Second), c.options()
	options.Now, options.MaxRollsPerHour = func() time.Time { return now }, most
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := a.index.Read(deployments, c.get("web"))
	a.index.Listed(w, "")
	l := newLoop(a.surroundings, unwritten(a))
	l.inFlight.done = func(*events.Delivery, context.Context, error) {}
	for i := range most + 1 {
		version := c.next()
		change := changeOf(func(c *events.Change) {
			c.ResourceVersion, c.ChangedAt, c.Fingerprint = version, version, fp(string("0123456789"[i]))
		})
		l.intake.consider(t.Context(), eventOf(change), a.index.Get(w.Key()), nil)
		now = now.Add(20 * time.Second)
		l.dispatcher.dispatch(t.Context())
		if !l.patcher.idle() {
			l.completion.finish(t.Context(), <-l.patcher.results)
		}
	}
	if got := len(c.patches()); got != most || refused != most {
		t.Errorf("it is rolled %d times, after %d refusals; want %d of each", got, refused, most)
	}
	if !l.debounce.isHeldFor(w.Key(), plan.RolledTooOften) {
		t.Error("the rolls do not count while this leader lasts")
	}
	if got := strings.Count(c.logged(), "refuses the annotation keyturn.dev/rolls"); got != 1 {
		t.Errorf("it is said %d times, want once:\n%s", got, c.logged())
	}
}

// countedRollOf returns a task that rolls for db and is to be counted on the workload.
func countedRollOf(t *testing.T, k workload.Kind, obj runtime.Object) *task {
	t.Helper()
	w, ok := workload.Read(k, obj, workload.Reading{MaxRollsPerHour: 2})
	if !ok {
		t.Fatal("no workload")
	}
	r := rollOf(t, k, w, db)
	r.write.RolledAt = written
	if !r.rolls || !w.Counts(r.write) {
		t.Fatal("no roll that counts")
	}
	var err error
	if r.patch, err = k.Patch(w, r.write); err != nil {
		t.Fatal(err)
	}
	return r
}

// With a policy that refuses every count, the answer to the patch without the count is what matters.
func TestARollThatFailsWithoutTheCountIsNoDenialUnlessThatIsDenied(t *testing.T) {
	denied := apierrors.NewForbidden(deploymentResource, "web", errors.New("the count is denied"))
	tests := []struct {
		name string
		then error
		want error
	}{
		{"a conflict", apierrors.NewConflict(deploymentResource, "web", errors.New("again")), nil},
		{"no longer as tested", kube.NotApplied(), nil},
		{"too many requests", apierrors.NewTooManyRequests("slowly", 1), nil},
		{"an error of the server", apierrors.NewInternalError(errors.New("etcd")), nil},
		{"the time is over", context.DeadlineExceeded, nil},
		{"denied", apierrors.NewForbidden(deploymentResource, "web", errors.New("all is denied")), denied},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			options, client := testOptions(), fake.NewClientset()
			answers := []error{denied, test.then}
			client.PrependReactor("patch", "deployments", func(k8stesting.Action) (bool, runtime.Object, error) {
				answer := answers[0]
				answers = answers[1:]
				return true, nil, answer
			})
			options.Client = client
			r := countedRollOf(t, deployments, webDeployment("50", rollOn("auto")))
			want := test.want
			if want == nil {
				want = test.then
			}
			result := patcherOf(options, indexOf(r.workload)).send(t.Context(), r)
			if !errors.Is(result.err, want) || result.uncounted != nil || len(answers) > 0 {
				t.Errorf("got %v, uncounted %v, want %v", result.err, result.uncounted, want)
			}
		})
	}
}

// A policy may allow dry runs, and refuse only what has an effect.
func TestAJobIsStartedOnceThoughTheCountIsRefused(t *testing.T) {
	cronJob := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "w", ResourceVersion: "50", Annotations: rollOn("auto")},
		Spec: batchv1.CronJobSpec{Suspend: new(false), JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			Spec: webDeployment("50", nil).Spec.Template.Spec,
		}}}},
	}
	denied := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "cronjobs"}, "web", errors.New("denied by a policy"))
	for _, counts := range []bool{true, false} {
		options, client := testOptions(), fake.NewClientset(cronJob)
		client.PrependReactor("patch", "cronjobs", func(action k8stesting.Action) (bool, runtime.Object, error) {
			sent, _ := action.(k8stesting.PatchActionImpl)
			dry := slices.Contains(sent.PatchOptions.DryRun, metav1.DryRunAll)
			if counted := bytes.Contains(sent.Patch, []byte("keyturn.dev~1rolls")); !dry || !counts && counted {
				return true, nil, denied
			}
			after, err := patched(cronJob.DeepCopy(), action)
			return true, after, err
		})
		options.Client = client
		r := countedRollOf(t, workload.StartedCronJob(), cronJob)
		result := patcherOf(options, indexOf(r.workload)).send(t.Context(), r)
		if result.err != nil || !errors.Is(result.unrecorded, workload.ErrUnrecorded) || (result.uncounted != nil) != !counts {
			t.Errorf("got %v, unrecorded %v, uncounted %v", result.err, result.unrecorded, result.uncounted)
		}
		jobs := 0
		for _, action := range client.Actions() {
			if action.Matches("create", "jobs") {
				jobs++
			}
		}
		if jobs != 1 {
			t.Errorf("Jobs are created %d times, want once", jobs)
		}
	}
}
