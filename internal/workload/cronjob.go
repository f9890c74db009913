package workload

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// cronJobs is the kind CronJob. A roll changes the job template, which then shows what the next job runs with. It starts no job, and
// touches no running one.
var cronJobs = Kind{
	Name: "cronjob", APIVersion: "batch/v1", Title: "CronJob", Resource: "cronjobs",
	Example: &batchv1.CronJob{},
	client: func(c Clients, namespace string) Objects {
		return typed(c.Typed.BatchV1().CronJobs(namespace))
	},
	read: func(obj runtime.Object) (parts, bool) {
		cronJob, ok := obj.(*batchv1.CronJob)
		if !ok {
			return parts{}, false
		}
		return parts{
			meta: &cronJob.ObjectMeta, template: &cronJob.Spec.JobTemplate.Spec.Template,
			progress: Progress{State: Complete, Message: "the next job starts with the new content"},
		}, true
	},
	template: "/spec/jobTemplate/spec/template", strategy: annotating,
}
