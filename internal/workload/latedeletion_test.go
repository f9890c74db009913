package workload

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clientbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
