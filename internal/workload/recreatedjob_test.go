package workload

import (
	"context"
	"errors"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clientbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// errKilled is the error of all requests of an actuator after it was killed.
var errKilled = errors.New("killed")

// jobServer is an API server with Jobs. Like a real one, it gives each created Job a UID, and respects the UID precondition of deletions.
func jobServer(objects ...runtime.Object) *fake.Clientset {
	client := fake.NewClientset(objects...)
	created := 0
	client.PrependReactor("create", "jobs", func(action k8stesting.Action) (bool, runtime.Object, error) {
		if create, ok := action.(k8stesting.CreateAction); ok {
			if job, ok := create.GetObject().(*batchv1.Job); ok {
				created++
				job.UID = types.UID(strconv.Itoa(created))
			}
		}
		return false, nil, nil
	})
	client.PrependReactor("delete", "jobs", func(action k8stesting.Action) (bool, runtime.Object, error) {
		sent, ok := action.(k8stesting.DeleteActionImpl)
		if !ok || sent.DeleteOptions.Preconditions == nil {
			return false, nil, nil
		}
		found, err := client.Tracker().Get(action.GetResource(), action.GetNamespace(), sent.GetName())
		if job, ok := found.(*batchv1.Job); err == nil && ok && job.UID != *sent.DeleteOptions.Preconditions.UID {
			return true, nil, apierrors.NewConflict(batchv1.Resource("jobs"), sent.GetName(), errors.New("another UID"))
		}
		return err != nil, nil, err
	})
	return client
}

// recreate recreates a Job, and is killed before the request with the given number. It reports whether it finished.
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
		client := jobServer(importJob(nil))
		jobs := client.BatchV1().Jobs("shop")
		ended := recreate(t, client, before)
		if shadow, err := jobs.Get(t.Context(), "import-keyturn", metav1.GetOptions{}); err == nil {
			restored++
			if _, err := (recreatedJobs{jobs: jobs}).restore(t.Context(), shadow.Name, shadow.UID, true); err != nil {
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

// interrupted are Jobs with which something happens before one is deleted.
type interrupted struct {
	clientbatchv1.JobInterface
	by func()
}

func (i interrupted) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	i.by()
	return i.JobInterface.Delete(ctx, name, options)
}

func TestAManifestOutlastsTheRestoreOfAnEarlierAttempt(t *testing.T) {
	job := importJob(nil)
	earlier := shadowOf(job)
	earlier.UID = "s"
	jobs := jobServer(job, earlier).BatchV1().Jobs("shop")
	again := func() { // until it is killed
		o := recreatedJobs{jobs: jobs}
		if _, err := o.keep(t.Context(), shadowOf(job)); err != nil {
			t.Error(err)
		}
		if err := o.remove(t.Context(), job.Name, job.UID); err != nil {
			t.Error(err)
		}
	}
	if _, err := (recreatedJobs{jobs: interrupted{jobs, again}}).restore(t.Context(), earlier.Name, earlier.UID, true); err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.Get(t.Context(), otherShadowName(job.Name), metav1.GetOptions{}); err != nil {
		t.Errorf("the Job is deleted, and nothing keeps its manifest: %v", err)
	}
}

func TestAShadowThatAnotherAttemptNeedsIsNotRestored(t *testing.T) {
	shadow := shadowOf(importJob(nil))
	shadow.UID = "later"
	jobs := jobServer(importJob(nil), shadow).BatchV1().Jobs("shop")
	if _, err := (recreatedJobs{jobs: jobs}).restore(t.Context(), shadow.Name, "earlier", true); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want that it is not there", err)
	}
	if _, err := jobs.Get(t.Context(), shadow.Name, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestAJobThatHasTheNameOfAShadowIsLeftAlone(t *testing.T) {
	other := importJob(nil)
	other.Name, other.Annotations[annotationRecreates] = "import-keyturn", "export/e"
	jobs := fake.NewClientset(importJob(nil), other).BatchV1().Jobs("shop")
	if _, err := (recreatedJobs{jobs: jobs}).keep(t.Context(), shadowOf(importJob(nil))); !errors.Is(err, ErrNameTaken) {
		t.Errorf("got %v, want %v", err, ErrNameTaken)
	}
	if _, err := jobs.Get(t.Context(), "import-keyturn", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// slowServer is an API server that does not respond to deletions of Jobs in time, and carries them out later.
type slowServer struct {
	clientbatchv1.JobInterface
	late []func(context.Context) error
}

func (s *slowServer) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	s.late = append(s.late, func(ctx context.Context) error { return s.JobInterface.Delete(ctx, name, options) })
	return context.DeadlineExceeded
}

// catchUp makes the server carry out the deletions that it has not answered.
func (s *slowServer) catchUp(t *testing.T) {
	t.Helper()
	for _, do := range s.late {
		if err := do(t.Context()); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
	s.late = nil
}

// attemptInVain tries to recreate a Job whose deletion is not answered.
func attemptInVain(t *testing.T, client *fake.Clientset) *slowServer {
	t.Helper()
	job := importJob(nil)
	slow := &slowServer{JobInterface: client.BatchV1().Jobs("shop")}
	o := recreatedJobs{jobs: slow}
	if _, err := o.keep(t.Context(), shadowOf(job)); err != nil {
		t.Fatal(err)
	}
	if err := o.remove(t.Context(), job.Name, job.UID); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want no answer", err)
	}
	return slow
}

// takeOver does what a new leader does with the shadows, once or repeatedly.
func takeOver(t *testing.T, client *fake.Clientset, again bool) {
	t.Helper()
	jobs := client.BatchV1().Jobs("shop")
	list, err := jobs.List(t.Context(), metav1.ListOptions{})
	testkit.Must(t, err)
	for _, job := range list.Items {
		if _, _, is := recreatedBy(&job.ObjectMeta); !is {
			continue
		}
		if _, err := (recreatedJobs{jobs: jobs}).restore(t.Context(), job.Name, job.UID, again); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
}

func wantRestored(t *testing.T, client *fake.Clientset) {
	t.Helper()
	list, err := client.BatchV1().Jobs("shop").List(t.Context(), metav1.ListOptions{})
	testkit.Must(t, err)
	if len(list.Items) != 1 || list.Items[0].Name != "import" || *list.Items[0].Spec.Suspend {
		t.Errorf("there are %d Jobs, want import alone", len(list.Items))
	}
}

func TestNoJobIsLostIfItsDeletionComesDuringTheNextAttempt(t *testing.T) {
	for before := 0; ; before++ {
		if before > 20 {
			t.Fatal("it makes more than 20 requests")
		}
		client := jobServer(importJob(nil))
		slow := attemptInVain(t, client)
		ended := recreate(t, client, before)
		slow.catchUp(t)
		takeOver(t, client, false)
		takeOver(t, client, true)
		if wantRestored(t, client); t.Failed() {
			t.Fatalf("killed before request %d", before+1)
		}
		if ended {
			return
		}
	}
}

func TestNoJobIsLostIfItsDeletionComesAfterTheNextLeader(t *testing.T) {
	client := jobServer(importJob(nil))
	slow := attemptInVain(t, client)
	takeOver(t, client, false)
	slow.catchUp(t)
	takeOver(t, client, true)
	wantRestored(t, client)
}
