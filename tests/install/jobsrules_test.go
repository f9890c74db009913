package install

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jobsNeeds returns a row for each right of deploy/components/jobs.
func jobsNeeds() []need {
	const resource = "jobs.batch"
	return append(reads(actuatorAccount, resource, "a Job is made anew", (*bench).hasRecreatedJob), []need{
		{
			account: actuatorAccount, right: "patch " + resource, breaks: "a Job is made anew",
			done: (*bench).hasRecreatedJob, beside: (*bench).hasStartedJob,
		},
		{
			account: actuatorAccount, right: "delete " + resource, breaks: "a Job is made anew",
			done: (*bench).hasRecreatedJob, beside: (*bench).hasStartedJob,
		},
		{
			account: actuatorAccount, right: "create " + resource, breaks: "a Job of a CronJob is started",
			done: (*bench).hasStartedJob, beside: rolls("web"),
		},
		{
			account: actuatorAccount, right: "get " + resource, breaks: "a Job that was deleted to be made anew is made",
			done: (*bench).hasRestoredJob, beside: (*bench).hasStartedJob,
		},
	}...)
}

// hasJob reports whether there is a Job that is as asked.
func (b *bench) hasJob(is func(*batchv1.Job) bool) bool {
	list, err := b.kube.BatchV1().Jobs(b.namespace).List(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Error(err)
		return false
	}
	return slices.ContainsFunc(list.Items, func(job batchv1.Job) bool { return is(&job) })
}

// hasRecreatedJob reports whether the first Job of testdata/jobs.yaml was made anew.
func (b *bench) hasRecreatedJob() bool {
	return b.hasJob(func(job *batchv1.Job) bool {
		return job.Name == "import" && job.Annotations["keyturn.dev/revision"] != ""
	})
}

// hasRestoredJob reports whether the Job exists whose manifest testdata/jobs.yaml has.
func (b *bench) hasRestoredJob() bool {
	return b.hasJob(func(job *batchv1.Job) bool { return job.Name == "lost" })
}

// hasStartedJob reports whether a Job of the CronJob of testdata/shop.yaml was started.
func (b *bench) hasStartedJob() bool {
	return b.hasJob(func(job *batchv1.Job) bool {
		owner := metav1.GetControllerOf(job)
		return owner != nil && owner.Name == "report" && job.Annotations["keyturn.dev/revision"] != ""
	})
}

// jobsScene returns the shop with testdata/jobs.yaml.
func jobsScene() scene {
	return shopScene().with("testdata/jobs.yaml", actuatorAccount, "--start-cronjobs", "--recreate-jobs")
}

func TestEachRuleOfJobsIsNeeded(t *testing.T) {
	t.Parallel()
	eachIsNeeded(t, jobsScene(), jobsNeeds(), rulesOf(t, "base/rbac.yaml", "components/jobs/rbac.yaml"))
}
