package actuate

import (
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// startsBed returns a loop that knows the CronJob report, and an API server that forbids patches of it.
func startsBed(t *testing.T, jobs ...runtime.Object) (*loop, *fake.Clientset, *workload.Workload) {
	t.Helper()
	cronJob := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "report", UID: "c", ResourceVersion: "50", Annotations: rollOn("auto"),
	}}
	cronJob.Spec.Suspend, cronJob.Spec.JobTemplate.Spec.Template = new(false), webDeployment("50", nil).Spec.Template
	w, ok := workload.Read(workload.StartedCronJob(), cronJob, workload.Reading{})
	if !ok {
		t.Fatal("no workload")
	}
	client := fake.NewClientset(append(jobs, cronJob)...)
	client.PrependReactor("patch", "cronjobs", func(k8stesting.Action) (bool, runtime.Object, error) {
		why := errors.New(`User "u" cannot patch resource "cronjobs" in API group "batch" in the namespace "shop"`)
		return true, nil, apierrors.NewForbidden(batchv1.Resource("cronjobs"), "report", why)
	})
	options := testOptions()
	options.Client, options.Reloader, options.StartCronJobs, options.Namespaces = client, true, true, []string{"shop"}
	return loopOf(t, options, w), client, w
}

func TestWhatAnotherLeaderHasStartedJobsForIsNotStartedAgain(t *testing.T) {
	first, client, w := startsBed(t)
	decide := func(l *loop, change events.Change) plan.Reason {
		return decisionOf(l.intake.index.Get(w.Key()), change, nil).Reason
	}
	first.debounce.schedule(first.debounce.pend(w, changeOf(nil)), written)
	first.dispatcher.dispatch(t.Context())
	first.completion.finish(t.Context(), <-first.patcher.results)
	list, err := client.BatchV1().Jobs("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("got %v, %v, want one Job", list, err)
	}
	second, _, _ := startsBed(t, &list.Items[0])
	if before := decide(second, changeOf(nil)); before != plan.Changed {
		t.Fatalf("before it leads: got %s", before)
	}
	second.starts.resume(t.Context())
	if got := decide(second, changeOf(nil)); got != plan.AlreadyRolled {
		t.Errorf("once it leads: got %s, want that a Job was started for it", got)
	}
	next := changeOf(func(c *events.Change) { c.ResourceVersion, c.ChangedAt, c.Fingerprint = "110", "110", fp("c") })
	if got := decide(second, next); got != plan.Changed {
		t.Errorf("the next change: got %s", got)
	}
}

func TestAJobWithTheRecordOfItsCronJobIsNotReported(t *testing.T) {
	l, _, _ := startsBed(t)
	w := rolledAt(t, "report-0", written, workload.Complete)
	w.Deaf = true
	l.intake.index.Listed(w, "")
	l.rollouts.following.reported[w.Key()] = reported{revision: "earlier", at: written.Add(-1)}
	l.rollouts.find(t.Context(), resumerOf(testOptions(), busOf(t)))
	if len(l.outbox.waiting) > 0 {
		t.Errorf("got %+v, want no outcome", l.outbox.waiting)
	}
}
