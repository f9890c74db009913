package tests

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
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
	if err != nil {
		r.Fatal(err)
	}
}

// started lists the Jobs of a CronJob.
func (r *rig) started(cronJob string) []batchv1.Job {
	r.Helper()
	list, err := r.client.BatchV1().Jobs(r.namespace).List(r.Context(), metav1.ListOptions{LabelSelector: "team=shop"})
	if err != nil {
		r.Fatal(err)
	}
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
	if err != nil {
		r.Fatal(err)
	}
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
	if err != nil {
		r.Fatal(err)
	}
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
	r.quiet()
}

// denyRecords has admission deny what is written on a CronJob, but not what is only tried.
func (r *rig) denyRecords(cronJob string) {
	r.Helper()
	rule := admissionv1.Rule{APIGroups: []string{"batch"}, APIVersions: []string{"v1"}, Resources: []string{"cronjobs"}}
	r.deny(rule, "has(request.dryRun) && request.dryRun", []string{cronJob}, func(ctx context.Context) error {
		_, err := r.client.BatchV1().CronJobs(r.namespace).Patch(ctx, cronJob, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"test":"denied?"}}}`), metav1.PatchOptions{})
		return err
	})
}

// findsWhatWasStarted is for the CronJob found.
func (r *rig) findsWhatWasStarted() {
	r.Helper()
	var sent atomic.Int32
	killed := make(chan struct{})
	kubeconfig := r.throughProxy(func(patch string, pass, _ func() int) {
		if strings.Contains(patch, "keyturn.dev~1revision") && sent.Add(1) > 1 {
			<-killed // The first only tries what this one is to write.
			return
		}
		pass()
	})
	end := sync.OnceFunc(func() { close(killed) })
	r.Cleanup(end)
	r.stop(r.actuator)
	r.startActuator("--kubeconfig", kubeconfig)
	r.secret("found", map[string]string{"password": "two"})
	r.eventually("a Job is started", func(context.Context) bool { return len(r.started("found")) > 0 })
	r.eventually("it is to be recorded", func(context.Context) bool { return sent.Load() > 1 })
	r.actuator.Kill()
	end()
	version := "@" + r.source(events.KindSecret, "found").GetResourceVersion() + "/"
	if strings.Contains(r.cronJob("found").Annotations[recordAnnotation], version) {
		r.Fatal("the change is recorded, want the actuator killed before")
	}
	r.startActuator()
	r.eventually("the change is recorded", func(context.Context) bool {
		return strings.Contains(r.cronJob("found").Annotations[recordAnnotation], version)
	})
	r.outcomeOf("found", events.VerbCompleted)
	if got := len(r.started("found")); got != 1 {
		r.Errorf("Jobs: got %d, want the one that was there", got)
	}
}

// endsStarted deletes the Jobs of a CronJob, as a time to live has it, or the limit of a CronJob's history.
func (r *rig) endsStarted(cronJob string) {
	r.Helper()
	background := metav1.DeletePropagationBackground
	for _, job := range r.started(cronJob) {
		err := r.client.BatchV1().Jobs(r.namespace).Delete(r.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: &background})
		if err != nil {
			r.Fatal(err)
		}
	}
}

// publishAgain has the last change of a Secret published again, and skipped as one that is known.
func (r *rig) publishAgain(secret string) {
	r.Helper()
	r.publish(r.lastMessage(secret))
	r.quiet()
}

// startsOneWithoutARecord is for the CronJob refused.
func (r *rig) startsOneWithoutARecord() {
	r.Helper()
	r.secret("refused", map[string]string{"password": "two"})
	recorded := r.outcomeOf("refused", events.VerbCompleted)
	r.endsStarted("refused")
	r.denyRecords("refused")
	r.secret("refused", map[string]string{"password": "three"})
	r.eventually("a Job is started", func(context.Context) bool { return len(r.started("refused")) > 0 })
	r.endsStarted("refused")
	r.eventually("it is reported", func(context.Context) bool {
		return slices.ContainsFunc(r.outcomes(), func(o events.Outcome) bool {
			return o.Workload.Name == "refused" && o.Verb == events.VerbCompleted && o.Revision != recorded.Revision
		})
	})
	r.publishAgain("refused")
	r.actuator.Kill()
	r.startActuator()
	r.publishAgain("refused")
	if got := len(r.started("refused")); got != 0 {
		r.Errorf("Jobs: got %d beside the one that is gone, want none", got)
	}
}
