package inspect

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// cronJobOf returns a CronJob that reads the Secret db.
func cronJobOf(name string, suspended bool) *batchv1.CronJob {
	web := deploymentOf(name, rollOn("auto"))
	cronJob := &batchv1.CronJob{ObjectMeta: web.ObjectMeta, Spec: batchv1.CronJobSpec{Suspend: &suspended}}
	cronJob.Spec.JobTemplate.Spec.Template = web.Spec.Template
	return cronJob
}

// jobOf returns a Job that reads the Secret db.
func jobOf(name string, owners ...metav1.OwnerReference) *batchv1.Job {
	web := deploymentOf(name, rollOn("auto"))
	job := &batchv1.Job{ObjectMeta: web.ObjectMeta, Spec: batchv1.JobSpec{Template: web.Spec.Template}}
	job.OwnerReferences = owners
	return job
}

func TestExplainAnswersForTheKindsOfTheActuator(t *testing.T) {
	bus := natstest.Buses(t, "demo")[0]
	publish(t, bus, changeOfDB())
	publishOutcomes(t, bus, events.Outcome{
		Cluster: "demo", Verb: events.VerbCompleted, Reason: "rolled-out", Time: historyNow, StartedAt: historyNow, Cause: "uid/100",
		Workload: events.Workload{Kind: "cronjob", Namespace: "shop", Name: "started", UID: "uid-started"}, ResourceVersion: "50", Revision: "r",
		Sources: []events.OutcomeSource{{Source: "secret/db", Fingerprint: fp("b"), ResourceVersion: "100", Event: "uid/100"}},
	})
	client := fake.NewClientset(cronJobOf("asleep", true), cronJobOf("started", false), jobOf("import"),
		jobOf("nightly", metav1.OwnerReference{APIVersion: "batch/v1", Kind: "CronJob", Name: "asleep", UID: "o", Controller: new(true)}))
	starting := workload.BuiltIn().With(workload.StartedCronJob())
	const rolls = "roll (content-changed): content that the pods read has changed"
	tests := []struct {
		name, workload string
		kinds          workload.Kinds
		want           string
	}{
		{"a suspended CronJob whose template is changed", "cronjob/asleep", workload.BuiltIn(), rolls},
		{"a suspended CronJob of which Jobs are started", "cronjob/asleep", starting, "record (suspended): the workload is suspended"},
		{"a Job that was started and could not be recorded", "cronjob/started", starting, "skip (already-rolled): the workload was rolled for this change"},
		{"a Job", "job/import", append(workload.BuiltIn(), workload.Job()), rolls},
		{"a Job where they are not made anew", "job/import", workload.BuiltIn(), "It is not rolled: an actuator with these flags leaves workloads of the kind job"},
		{"a Job of a CronJob", "job/nightly", append(workload.BuiltIn(), workload.Job()), "It is left alone, whatever it asks for"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			options := ExplainOptions{Origins: events.Origins{Cluster: "demo"}, Clients: workload.Clients{Typed: client}, Kinds: test.kinds}
			explainSays(t, options, bus, test.workload, test.want)
		})
	}
}
