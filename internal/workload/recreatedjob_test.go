package workload

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// errKilled is the answer to the requests of an actuator that was killed.
var errKilled = errors.New("killed")

// recreate makes a Job anew, and is killed before a request of the number. It reports whether it came to its end.
func recreate(t *testing.T, client *fake.Clientset, before int) bool {
	t.Helper()
	requests := 0
	killed := true
	client.PrependReactor("*", "jobs", func(k8stesting.Action) (bool, runtime.Object, error) {
		requests++
		return killed && requests > before, nil, errKilled
	})
	defer func() { killed = false }()
	o := recreatedJobs{jobs: client.BatchV1().Jobs("shop")}
	job := importJob(nil)
	shadow, err := o.keep(t.Context(), shadowOf(job))
	if err == nil {
		err = o.remove(t.Context(), job.Name, job.UID)
	}
	if err == nil {
		_, err = o.create(t.Context(), shadow)
	}
	if err != nil && !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	return err == nil
}

func TestNoJobIsLostWheneverTheActuatorIsKilled(t *testing.T) {
	restored := 0
	for before := 0; ; before++ {
		if before > 20 {
			t.Fatal("it makes more than 20 requests")
		}
		client := fake.NewClientset(importJob(nil))
		jobs := client.BatchV1().Jobs("shop")
		ended := recreate(t, client, before)
		if _, err := jobs.Get(t.Context(), "import-keyturn", metav1.GetOptions{}); err == nil {
			restored++
			if _, err := (recreatedJobs{jobs: jobs}).restore(t.Context(), "import-keyturn"); err != nil {
				t.Errorf("killed before request %d: restoring it: %v", before+1, err)
			}
		}
		job, err := jobs.Get(t.Context(), "import", metav1.GetOptions{})
		if err != nil {
			t.Errorf("killed before request %d: %v", before+1, err)
			continue
		}
		if *job.Spec.Suspend || job.Annotations[annotationRecreates] != "" {
			t.Errorf("killed before request %d: the Job is that of the shadow", before+1)
		}
		if _, err := jobs.Get(t.Context(), "import-keyturn", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("killed before request %d: the shadow is left: %v", before+1, err)
		}
		if ended {
			break
		}
	}
	if restored < 3 {
		t.Errorf("there was something to restore %d times, want it after the shadow, the deletion and the creation", restored)
	}
}

func TestTheShadowOfAnEarlierAttemptIsReplaced(t *testing.T) {
	earlier := shadowOf(importJob(nil))
	earlier.Annotations[annotationRevision] = "r0"
	client := fake.NewClientset(importJob(nil), earlier)
	kept, err := recreatedJobs{jobs: client.BatchV1().Jobs("shop")}.keep(t.Context(), shadowOf(importJob(nil)))
	if err != nil || kept.Annotations[annotationRevision] != "r1" {
		t.Errorf("kept %v, %v, want the manifest of this attempt", kept, err)
	}
}

func TestAJobThatHasTheNameOfAShadowIsLeftAlone(t *testing.T) {
	other := importJob(nil)
	other.Name = "import-keyturn"
	client := fake.NewClientset(importJob(nil), other)
	if _, err := (recreatedJobs{jobs: client.BatchV1().Jobs("shop")}).keep(t.Context(), shadowOf(importJob(nil))); err == nil {
		t.Error("no error, want one: the manifest cannot be kept")
	}
	if _, err := client.BatchV1().Jobs("shop").Get(t.Context(), "import-keyturn", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
