package reloader

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// runJobs creates a CronJob whose time never comes and a Job, which both read what read adds to their templates, and returns the UID of the Job.
func (r *rig) runJobs(read func(template *corev1.PodTemplateSpec)) string {
	r.Helper()
	template := programs.PodTemplate(map[string]string{"app": "jobs"})
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	read(&template)
	jobs := r.client.BatchV1()
	_, err := jobs.CronJobs(r.namespace).Create(r.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "report", Annotations: auto()},
		Spec:       batchv1.CronJobSpec{Schedule: "0 0 31 2 *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}},
	}, metav1.CreateOptions{})
	testkit.Must(r, err)
	job, err := jobs.Jobs(r.namespace).Create(r.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "import", Annotations: auto()}, Spec: batchv1.JobSpec{Template: template},
	}, metav1.CreateOptions{})
	testkit.Must(r, err)
	return string(job.UID)
}

// jobs returns how many Jobs of the CronJob were started, and the UID of the other Job, empty if it is not there.
func (r *rig) jobs() (started int, uid string) {
	r.Helper()
	list, err := r.client.BatchV1().Jobs(r.namespace).List(r.Context(), metav1.ListOptions{})
	testkit.Must(r, err)
	for _, job := range list.Items {
		switch {
		case metav1.GetControllerOf(&job) != nil:
			started++
		case job.Name == "import":
			uid = string(job.UID)
		}
	}
	return started, uid
}

func TestJobsAreStartedAndMadeAnewUnlessTheyAreIgnored(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, ignored     string
		starts, recreates bool
	}{
		{"by default", "", true, true},
		{"ignoring Jobs", "jobs", true, false},
		{"ignoring CronJobs", "cronjobs", false, true},
		{"ignoring both", "jobs,cronjobs", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.secret("db", map[string]string{"password": "one"})
			before := r.runJobs(readDB)
			r.start("--ignored-workload-types", test.ignored)
			r.placeSentinels(auto())
			r.secret("db", map[string]string{"password": "two"})
			testkit.Await(r.T, "what is not ignored has the change", func(context.Context) bool {
				started, uid := r.jobs()
				return (started == 1 || !test.starts) && (uid != "" && uid != before || !test.recreates)
			})
			r.passSentinels()
			started, uid := r.jobs()
			if starts := started == 1; starts != test.starts || started > 1 {
				t.Errorf("Jobs that were started: got %d, want one: %t", started, test.starts)
			}
			if recreates := uid != before; recreates != test.recreates {
				t.Errorf("the Job was made anew: got %t, want %t", recreates, test.recreates)
			}
		})
	}
}
