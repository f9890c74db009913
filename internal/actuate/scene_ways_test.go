//go:build !race

package actuate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// These are the words for requests to the API server, and for the ways in which workloads get a change other than by a new pod template: Jobs that are
// started or recreated, and what Reloader does.

// lastClient returns the client of the actuator that was started last.
func (s *scene) lastClient() *fake.Clientset {
	s.Helper()
	client, ok := s.options.Client.(*fake.Clientset)
	if !ok {
		s.Fatal("no actuator was started")
	}
	return client
}

// intercept lets a reaction answer requests of the actuator that was started last, before the API server does.
func (s *scene) intercept(verb, resource string, reaction k8stesting.ReactionFunc) {
	s.Helper()
	client := s.lastClient()
	client.Lock()
	defer client.Unlock()
	client.PrependReactor(verb, resource, reaction)
}

// requests returns what the actuator that was started last has sent so far, refused requests included: those with a verb, about a resource.
func (s *scene) requests(verb, resource string) []k8stesting.Action {
	s.Helper()
	return slices.DeleteFunc(s.lastClient().Actions(), func(action k8stesting.Action) bool { return !action.Matches(verb, resource) })
}

// kubernetesEvents returns the Kubernetes Events that the actuator that was started last has tried to write so far. Where the names of workloads and
// reasons are enough, use wantNotices.
func (s *scene) kubernetesEvents() []*corev1.Event {
	s.Helper()
	var list []*corev1.Event
	for _, action := range s.requests("create", "events") {
		if create, ok := action.(k8stesting.CreateAction); ok {
			// One about a namespace only asks whether that is being deleted.
			if event, ok := create.GetObject().(*corev1.Event); ok && event.InvolvedObject.Kind != "Namespace" {
				list = append(list, event)
			}
		}
	}
	return list
}

// reloaded is what Reloader writes on a workload that it rolls for a source at a time.
func reloaded(at time.Time, source string) aspect {
	return func(object *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
		kind, name, _ := strings.Cut(source, "/")
		marker := fmt.Sprintf(`{"type":%q,"name":%q,"namespace":%q,"hash":"0","containerRefs":["app"],"observedAt":%d}`,
			strings.ToUpper(kind), name, object.Namespace, at.Unix())
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, workload.AnnotationReloadedFrom, marker)
	}
}

// reloadedAt is what a workload has that Reloader rolled for a source at an earlier time.
func reloadedAt(at time.Time, source string) aspect {
	return func(object *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
		reloaded(at, source)(object, pod)
		object.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: workload.ReloaderManager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: at.Truncate(time.Second)},
		}}
	}
}

// reloaderRolls has Reloader roll a workload for a source now.
func (s *scene) reloaderRolls(name, source string) {
	s.Helper()
	s.writeAs(workload.ReloaderManager, name, reloaded(time.Now(), source))
}

// jobsResource has the Jobs.
var jobsResource = batchv1.SchemeGroupVersion.WithResource("jobs")

// withUID gives an object its UID.
func withUID(uid types.UID) aspect {
	return func(object *metav1.ObjectMeta, _ *corev1.PodTemplateSpec) { object.UID = uid }
}

// job makes a Job of the scene's namespace, which no controller runs.
func (s *scene) job(name string, aspects ...aspect) {
	s.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	job.Spec.Suspend = new(false) // The API server sets it.
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}},
	}
	for _, aspect := range aspects {
		aspect(&job.ObjectMeta, &job.Spec.Template)
	}
	s.create(job)
}

// cronJob makes a CronJob of the scene's namespace that reads all of secret/db, and says whether it is suspended, as the API server does.
func (s *scene) cronJob(name string, suspended bool) {
	s.Helper()
	s.workload("cronjob/"+name, auto, reads("secret/db"))
	s.change("cronjob/"+name, func(object runtime.Object) {
		if job, ok := object.(*batchv1.CronJob); ok {
			job.Spec.Suspend = &suspended
		}
	})
}

// jobs returns the Jobs of the scene's namespace by their names.
func (s *scene) jobs() map[string]*batchv1.Job {
	s.Helper()
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	list, err := s.storage.List(jobsResource, batchv1.SchemeGroupVersion.WithKind("Job"), namespace)
	testkit.Must(s, err)
	jobs := make(map[string]*batchv1.Job)
	if found, ok := list.(*batchv1.JobList); ok {
		for i := range found.Items {
			jobs[found.Items[i].Name] = &found.Items[i]
		}
	}
	return jobs
}

// wantJobs wants there to be these Jobs, and no others.
func (s *scene) wantJobs(names ...string) {
	s.Helper()
	s.wantAll("Jobs", names, slices.Collect(maps.Keys(s.jobs())))
}

// deleteJob deletes a Job.
func (s *scene) deleteJob(name string) {
	s.Helper()
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	testkit.Must(s, s.remove(jobsResource, namespace, name))
}
