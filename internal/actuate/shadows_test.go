package actuate

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAJobThatWasDeletedIsMadeAndItsShadowIsNot(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
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
	_, stop := c.start(options)
	defer stop()
	c.eventually("the Job is there", func() bool {
		job, err := jobs.Get(t.Context(), "import", metav1.GetOptions{})
		return err == nil && !*job.Spec.Suspend
	})
	c.eventually("the shadow is gone", func() bool {
		_, err := jobs.Get(t.Context(), "import-keyturn", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestTheManifestThatAnotherActuatorKeepsIsLeftToItForAWhile(t *testing.T) {
	t.Parallel()
	w, ok := workload.Read(workload.Job(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "import-keyturn", UID: "s", ResourceVersion: "5", CreationTimestamp: metav1.NewTime(written),
		Annotations: map[string]string{"keyturn.dev/recreates": "import/u"},
	}}, workload.Reading{})
	if !ok {
		t.Fatal("no workload")
	}
	options, now := testOptions(), written
	options.Client = fake.NewClientset()
	x := indexOf(w)
	s := &shadows{
		kinds: workload.Kinds{workload.Job()}, index: x, patcher: patcherOf(options, x), left: make(map[workload.Key]time.Time),
		now: func() time.Time { return now },
	}
	s.resume()
	now = written.Add(kube.PatchTimeout - time.Second)
	if s.advance(t.Context()); s.patcher.busy(w.Key()) {
		t.Error("it is taken while another actuator may be about to need it")
	}
	now = written.Add(kube.PatchTimeout)
	if s.advance(t.Context()); !s.patcher.busy(w.Key()) {
		t.Error("it is left alone when no other actuator needs it")
	}
	result := <-s.patcher.results
	s.patcher.finished(result.roll)
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
	decide := func() plan.Decision { return plan.Decide(x.get(w.Key()), change, nil) }
	before := decide()
	if before.Reason != plan.Changed {
		t.Fatalf("before: got %s", before.Reason)
	}
	x.keepStart(events.Outcome{
		Verb: events.VerbStarted, Revision: "r", Workload: w.ID, Sources: []events.OutcomeSource{outcomeSource(before, change)},
	})
	if again := decide(); again.Reason != plan.AlreadyRolled {
		t.Errorf("after the outcome: got %s", again.Reason)
	}
	if x.get(w.Key()).Revision != "r" {
		t.Error("its rollout cannot be followed to its end")
	}
}
