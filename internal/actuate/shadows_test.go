package actuate

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAJobThatWasDeletedIsMadeAndItsShadowIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newStreamless(t)
		jobs := c.client.BatchV1().Jobs("shop")
		_, err := jobs.Create(t.Context(), &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "import-keyturn", UID: "s", ResourceVersion: c.next(),
				Annotations: map[string]string{"keyturn.dev/recreates": "import/u", "keyturn.dev/roll-on": "auto"},
			},
			Spec: batchv1.JobSpec{Suspend: new(true)},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		options := c.options()
		options.RecreateJobs = true
		c.lead(options)
		c.eventually("the Job is there", func() bool {
			job, err := jobs.Get(t.Context(), "import", metav1.GetOptions{})
			return err == nil && !*job.Spec.Suspend
		})
		c.eventually("the shadow is gone", func() bool {
			_, err := jobs.Get(t.Context(), "import-keyturn", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	})
}

// shadowBed is a loop that knows the shadow of the Job import, and an API server that has it but not the Job.
type shadowBed struct {
	*testing.T
	*loop
	now    time.Time
	client *fake.Clientset
	shadow *batchv1.Job
}

var importKey = workload.Key{Kind: "job", Namespace: "shop", Name: "import"}

func newShadowBed(t *testing.T) *shadowBed {
	t.Helper()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "import", UID: "u", ResourceVersion: "4", CreationTimestamp: metav1.NewTime(written), Annotations: rollOn("auto"),
		},
		Spec: batchv1.JobSpec{Template: webDeployment("4", nil).Spec.Template},
	}
	w, _ := workload.Read(workload.Job(), job, workload.Reading{})
	patch, err := workload.Job().Patch(w, workload.Write{Rolls: true, Rolled: map[string]workload.RolledFor{
		"secret/db": {Fingerprint: fp("b"), Version: "100", UID: "uid"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	sets, _, err := operationsOf(patch.Body)
	if err != nil {
		t.Fatal(err)
	}
	for path, value := range sets {
		if name, is := strings.CutPrefix(path, "/metadata/annotations/"); is {
			job.Annotations[strings.ReplaceAll(name, "~1", "/")], _ = value.(string)
		}
	}
	job.Name, job.UID, job.Annotations["keyturn.dev/recreates"] = "import-keyturn", "s", "import/u"
	b := &shadowBed{T: t, now: written, client: fake.NewClientset(job), shadow: job}
	b.client.PrependReactor("create", "jobs", func(action k8stesting.Action) (bool, runtime.Object, error) {
		if create, ok := action.(k8stesting.CreateAction); ok {
			if made, ok := create.GetObject().(*batchv1.Job); ok {
				made.UID, made.ResourceVersion = "made", "60"
			}
		}
		return false, nil, nil
	})
	options := testOptions()
	options.RecreateJobs, options.Client, options.Now = true, b.client, func() time.Time { return b.now }
	w, _ = workload.Read(workload.Job(), job, workload.Reading{})
	b.loop = loopOf(t, options, w)
	b.shadows.resume()
	return b
}

// restores reports whether the Job is restored at a time, and finishes the restore.
func (b *shadowBed) restores(at time.Time) bool {
	b.Helper()
	b.now = at
	b.shadows.advance(b.Context())
	if !b.patcher.busy(importKey) {
		return false
	}
	b.completion.finish(b.Context(), <-b.patcher.results)
	return true
}

func TestTheManifestThatAnotherActuatorKeepsIsLeftToItForAWhile(t *testing.T) {
	t.Parallel()
	b := newShadowBed(t)
	if b.restores(written.Add(kube.PatchTimeout - time.Second)) {
		t.Error("it is taken while another actuator may be about to need it")
	}
	again := b.shadow.DeepCopy()
	again.UID, again.ResourceVersion, again.CreationTimestamp = "s2", "8", metav1.NewTime(written.Add(time.Second))
	w, _ := workload.Read(workload.Job(), again, workload.Reading{})
	b.intake.index.Written(w)
	b.shadows.review(w.Key())
	if b.restores(written.Add(kube.PatchTimeout)) {
		t.Error("that of a later attempt is taken while another actuator may be about to need it")
	}
	if !b.restores(written.Add(kube.PatchTimeout + time.Second)) {
		t.Error("it is left alone when no other actuator needs it")
	}
}

func TestAManifestIsKeptWhileItsJobIsStillToBeRolled(t *testing.T) {
	t.Parallel()
	b := newShadowBed(t)
	p := newPending(importKey, written)
	b.debounce.schedule(p, written)
	if b.restores(written.Add(kube.PatchTimeout)) {
		t.Fatal("it is taken although the next attempt may be about to need it")
	}
	b.debounce.drop(b.debounce.pop(b.now, inAny))
	if !b.restores(written.Add(kube.PatchTimeout)) {
		t.Error("it is left alone when there is no next attempt")
	}
}

func TestAJobWaitsWhileItIsRestored(t *testing.T) {
	t.Parallel()
	b := newShadowBed(t)
	b.now = written.Add(kube.PatchTimeout)
	b.shadows.advance(t.Context())
	b.debounce.schedule(newPending(importKey, written), written)
	b.dispatcher.dispatch(t.Context())
	if p := b.debounce.byKey[importKey]; p == nil || p.held != plan.Busy {
		t.Errorf("it is %+v, want it held while it is restored", p)
	}
	b.completion.finish(t.Context(), <-b.patcher.results)
	if b.debounce.countHeld() > 0 {
		t.Error("it is still held")
	}
}

func TestAJobThatIsRestoredIsReportedOnce(t *testing.T) {
	t.Parallel()
	b := newShadowBed(t)
	if !b.restores(written.Add(kube.PatchTimeout)) {
		t.Fatal("it is not restored")
	}
	var got []events.Verb
	for _, r := range b.outbox.waiting {
		got = append(got, r.outcome.Verb)
		if o := r.outcome; o.Workload.Name != "import" || o.Revision != b.shadow.Annotations[annotationRevision] || len(o.Sources) != 1 {
			t.Errorf("got %+v, want the roll of the Job", o)
		}
		if _, err := r.outcome.Event(); err != nil {
			t.Errorf("it cannot be published: %v", err)
		}
	}
	if diff := cmp.Diff([]events.Verb{events.VerbStarted, events.VerbCompleted}, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if len(b.rollouts.following.rollouts) > 0 {
		t.Error("it is still followed")
	}
}

func TestAJobThatNeedsNoRestoreIsNotReported(t *testing.T) {
	t.Parallel()
	for _, uid := range []types.UID{"u", "theirs"} {
		b := newShadowBed(t)
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "import", UID: uid, Annotations: map[string]string{
			annotationRolled: "{}", annotationRevision: "earlier",
		}}}
		if err := b.client.Tracker().Add(job); err != nil {
			t.Fatal(err)
		}
		if !b.restores(written.Add(kube.PatchTimeout)) || len(b.outbox.waiting) > 0 {
			t.Errorf("of the Job %s: got %+v, want no outcome", uid, b.outbox.waiting)
		}
	}
}

// A deletion that the API server has not answered may be carried out after the actuator that sent it has ended.
func TestAManifestIsKeptForAWhileIfItsJobWasNotDeleted(t *testing.T) {
	t.Parallel()
	b := newShadowBed(t)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "import", UID: "u"}}
	if err := b.client.Tracker().Add(job); err != nil {
		t.Fatal(err)
	}
	isKept := func() bool {
		_, err := b.client.BatchV1().Jobs("shop").Get(t.Context(), b.shadow.Name, metav1.GetOptions{})
		return err == nil
	}
	at := written.Add(kube.PatchTimeout)
	if !b.restores(at) || !isKept() {
		t.Fatal("it is removed while a deletion may be on its way")
	}
	if b.restores(at.Add(shadowRetry - time.Second)) {
		t.Error("it is looked at again at once")
	}
	if !b.restores(at.Add(shadowRetry)) || isKept() {
		t.Error("it is still there when no deletion is on its way any more")
	}
}

func TestAStartThatOnlyAnOutcomeTellsOfIsNotRepeated(t *testing.T) {
	t.Parallel()
	cronJob := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "report", UID: "c", ResourceVersion: "50", Annotations: rollOn("auto"),
	}}
	cronJob.Spec.JobTemplate.Spec.Template = webDeployment("50", nil).Spec.Template
	w, ok := workload.Read(workload.StartedCronJob(), cronJob, workload.Reading{})
	if !ok {
		t.Fatal("no workload")
	}
	x := indexOf(w)
	change := changeOf(nil)
	decide := func() plan.Decision { return decisionOf(x.Get(w.Key()), change, nil) }
	before := decide()
	if before.Reason != plan.Changed {
		t.Fatalf("before: got %s", before.Reason)
	}
	x.KeepStart(events.Outcome{
		Verb: events.VerbStarted, Revision: "r", Workload: w.ID, Sources: []events.OutcomeSource{outcomeSource(before, change)},
	})
	if again := decide(); again.Reason != plan.AlreadyRolled {
		t.Errorf("after the outcome: got %s", again.Reason)
	}
	if x.Get(w.Key()).Revision != "r" {
		t.Error("its rollout cannot be followed to its end")
	}
}
