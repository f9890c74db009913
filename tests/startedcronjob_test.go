package tests

import (
	"context"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// schedule creates a CronJob that reads a Secret and whose time never comes.
func (r *rig) schedule(name, secret string, suspended bool) {
	r.Helper()
	template := programs.PodTemplate(map[string]string{"app": name})
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	programs.ReadSecret(&template, secret)
	_, err := r.client.BatchV1().CronJobs(r.namespace).Create(r.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"keyturn.dev/roll-on": "auto"}},
		Spec: batchv1.CronJobSpec{Schedule: "0 0 31 2 *", Suspend: &suspended, JobTemplate: batchv1.JobTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "shop"}}, Spec: batchv1.JobSpec{Template: template},
		}},
	}, metav1.CreateOptions{})
	testkit.Must(r, err)
}

// started lists the Jobs of a CronJob.
func (r *rig) started(cronJob string) []batchv1.Job {
	r.Helper()
	list, err := r.client.BatchV1().Jobs(r.namespace).List(r.Context(), metav1.ListOptions{LabelSelector: "team=shop"})
	testkit.Must(r, err)
	var jobs []batchv1.Job
	for _, job := range list.Items {
		if owner := metav1.GetControllerOf(&job); owner != nil && owner.Kind == "CronJob" && owner.Name == cronJob {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

func (r *rig) cronJob(name string) *batchv1.CronJob {
	r.Helper()
	cronJob, err := r.client.BatchV1().CronJobs(r.namespace).Get(r.Context(), name, metav1.GetOptions{})
	testkit.Must(r, err)
	return cronJob
}

// startsOneForEachChange is for the CronJobs report and asleep.
func (r *rig) startsOneForEachChange() {
	r.Helper()
	generation := r.cronJob("report").Generation

	r.secret("db", map[string]string{"password": "two"})
	completed := r.outcomeOf("report", events.VerbCompleted)
	jobs := r.started("report")
	if len(jobs) != 1 {
		r.Fatalf("Jobs after a change: got %d, want 1", len(jobs))
	}
	annotations := jobs[0].Annotations
	if annotations["cronjob.kubernetes.io/instantiate"] != "manual" || annotations["keyturn.dev/revision"] != completed.Revision {
		r.Errorf("annotations of the Job: got %v, want those of one started by hand at the revision %s", annotations, completed.Revision)
	}
	version := r.source(events.KindSecret, "db").GetResourceVersion()
	r.eventually("the suspended one has the change recorded", func(context.Context) bool {
		return strings.Contains(r.cronJob("asleep").Annotations[recordAnnotation], "@"+version+"/")
	})

	// A new leader finds everything done.
	r.actuator.Kill()
	r.startActuator()
	_, err := r.client.BatchV1().CronJobs(r.namespace).Patch(r.Context(), "asleep", types.MergePatchType,
		[]byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{})
	testkit.Must(r, err)
	r.secret("other", map[string]string{"password": "one"})
	r.schedule("sentinel", "other", false)
	r.eventually("the sentinel has a record", func(context.Context) bool {
		return r.cronJob("sentinel").Annotations[recordAnnotation] != ""
	})
	r.secret("other", map[string]string{"password": "two"})
	r.outcomeOf("sentinel", events.VerbCompleted)
	if got := len(r.started("report")); got != 1 {
		r.Errorf("Jobs after a restart: got %d, want 1", got)
	}
	if got := len(r.started("asleep")); got != 0 {
		r.Errorf("Jobs of the one that was suspended: got %d, want none for a change that its next run reads", got)
	}

	r.secret("db", map[string]string{"password": "three"})
	r.eventually("a Job of each is started for the next change", func(context.Context) bool {
		return len(r.started("report")) == 2 && len(r.started("asleep")) == 1
	})
	if got := r.cronJob("report").Generation; got != generation {
		r.Errorf("generation of the CronJob: got %d, want %d as before, because only a Job is started", got, generation)
	}
}
