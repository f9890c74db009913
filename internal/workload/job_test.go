package workload

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// importJob is a Job as the API server would return it for the patch of a roll.
func importJob(change func(*batchv1.Job)) *batchv1.Job {
	ofSystem := map[string]string{
		"app": "import", "controller-uid": "u", "job-name": "import", batchv1.ControllerUidLabel: "u", batchv1.JobNameLabel: "import",
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: "import", Namespace: "shop", UID: "u", ResourceVersion: "7", Generation: 2, Labels: map[string]string{"app": "import"},
			Annotations: map[string]string{annotationRevision: "r1", annotationRolled: "{}", events.AnnotationCause: "secret/db"},
			Finalizers:  []string{"example.com/wait"}, CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
		},
		Spec: batchv1.JobSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: "u"}}, Suspend: new(false),
			TTLSecondsAfterFinished: new(int32(60)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: ofSystem}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}},
			},
		},
		Status: batchv1.JobStatus{Succeeded: 1},
	}
	if change != nil {
		change(job)
	}
	return job
}

func TestAJobIsMadeAnewOfWhatItsAuthorWrote(t *testing.T) {
	job := importJob(nil)
	before := job.DeepCopy()
	shadow := shadowOf(job)
	if shadow.Name != "import-keyturn" || !*shadow.Spec.Suspend || shadow.Annotations[annotationRecreates] != "import/u" {
		t.Errorf("the shadow is %s, suspended %t, of %q", shadow.Name, *shadow.Spec.Suspend, shadow.Annotations[annotationRecreates])
	}
	want := importJob(func(j *batchv1.Job) {
		j.UID, j.ResourceVersion, j.Generation, j.Finalizers, j.CreationTimestamp = "", "", 0, nil, metav1.Time{}
		j.Spec.Selector, j.Status = nil, batchv1.JobStatus{}
		j.Spec.Template.Labels = map[string]string{"app": "import"}
		j.Spec.Template.Annotations = map[string]string{annotationRevision: "r1", events.AnnotationCause: "secret/db"}
	})
	testkit.WantEqual(t, "the Job", want, recreatedOf(shadow))
	if diff := cmp.Diff(before, job); diff != "" {
		t.Errorf("the old Job was changed (-before +after):\n%s", diff)
	}
}

func TestAJobOfSomeoneElseIsNotMadeAnew(t *testing.T) {
	now := metav1.Now()
	tests := []struct {
		name   string
		change func(*batchv1.Job)
		asks   bool
	}{
		{"a Job by itself", func(*batchv1.Job) {}, true},
		{"an owner that does not control it", func(j *batchv1.Job) { j.OwnerReferences = []metav1.OwnerReference{{Kind: "Release", Name: "r"}} }, true},
		{"a Job of a CronJob", func(j *batchv1.Job) {
			j.OwnerReferences = []metav1.OwnerReference{{Kind: "CronJob", Name: "nightly", Controller: new(true)}}
		}, false},
		{"a Job that is being deleted", func(j *batchv1.Job) { j.DeletionTimestamp = &now }, false},
		{"a shadow", func(j *batchv1.Job) { *j = *shadowOf(j) }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			job := importJob(func(j *batchv1.Job) {
				j.Annotations["keyturn.dev/roll-on"] = "auto"
				j.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{readsAll(db)}
			})
			test.change(job)
			w, ok := Read(Job(), job, Reading{})
			if !ok || w.OptIn.Empty() == test.asks {
				t.Errorf("read %t, asks for nothing: %t", ok, w.OptIn.Empty())
			}
			if isShadow := w.StandsFor == (Key{Kind: "job", Namespace: "shop", Name: "import"}); isShadow != (test.name == "a shadow") {
				t.Errorf("it stands for %v", w.StandsFor)
			}
		})
	}
}

// FuzzKeptManifest reads any Job as one to recreate, and as one that keeps the manifest of another.
func FuzzKeptManifest(f *testing.F) {
	const pods = `"template":{"metadata":{"labels":{"app":"import","job-name":"import"}},"spec":{"containers":[{"name":"a"}]}}`
	f.Add(`{"metadata":{"name":"import","namespace":"shop","uid":"u","labels":{"controller-uid":"u"},"finalizers":["a/b"]},"spec":{` + pods + `}}`)
	f.Add(`{"metadata":{"name":"import-keyturn","annotations":{"keyturn.dev/recreates":"import/u"}},"spec":{"suspend":true,` + pods + `}}`)
	f.Add(`{"metadata":{"name":"import","annotations":{"keyturn.dev/recreates":"import/u"}},"spec":{"manualSelector":true,"selector":{},` + pods + `}}`)
	f.Add(`{"metadata":{"name":"a","annotations":{"keyturn.dev/recreates":"/"},"ownerReferences":[{"controller":true,"kind":"CronJob"}]}}`)
	f.Add(`{"metadata":{"name":"` + strings.Repeat("a", 63) + `","annotations":{"keyturn.dev/recreates":"b/c/d","keyturn.dev/rolled":"{}"}}}`)
	f.Fuzz(func(t *testing.T, manifest string) {
		job := &batchv1.Job{}
		if json.Unmarshal([]byte(manifest), job) != nil {
			t.Skip("the API server gives Jobs")
		}
		before := job.DeepCopy()
		if _, ok := Read(jobs, job, Reading{Reloader: true, All: true}); !ok {
			t.Fatal("a Job is none")
		}
		shadow := shadowOf(job)
		if shadow.Spec.Suspend == nil || !*shadow.Spec.Suspend || isRecreatable(&shadow.ObjectMeta) || len(shadow.Name) > maxShadowName ||
			shadow.Spec.ManagedBy == nil || *shadow.Spec.ManagedBy == batchv1.JobControllerName {
			t.Errorf("the shadow is %+v", shadow.ObjectMeta)
		}
		of, uid, is := recreatedBy(&shadow.ObjectMeta)
		if valid := job.Name != "" && job.UID != "" && !strings.Contains(job.Name, "/"); valid && (!is || of != job.Name || uid != job.UID) {
			t.Errorf("the shadow of %q %q is that of %q %q", job.Name, job.UID, of, uid)
		}
		for _, kept := range []*batchv1.Job{shadow, job} {
			again := recreatedOf(kept)
			if _, still := again.Annotations[annotationRecreates]; still || again.UID != "" || again.Spec.Suspend == nil || *again.Spec.Suspend {
				t.Errorf("it is made anew as %+v", again.ObjectMeta)
			}
		}
		if diff := cmp.Diff(before, job); diff != "" {
			t.Errorf("the Job was changed (-before +after):\n%s", diff)
		}
	})
}
