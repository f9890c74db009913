//go:build !race

package actuate_test

import (
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/workload"
)

// startsJobs makes the CronJob report, of which changes start Jobs, and on which nothing may be written: Reloader's own role does not allow that.
func startsJobs(s *scene) {
	s.options.Reloader, s.options.StartCronJobs = true, true
	s.workload("cronjob/report", auto, reads("secret/db"))
	s.change("cronjob/report", func(object runtime.Object) {
		if report, ok := object.(*batchv1.CronJob); ok {
			report.Spec.Suspend = new(false) // The API server sets it.
		}
	})
	why := errors.New(`User "u" cannot patch resource "cronjobs" in API group "batch" in the namespace "shop"`)
	s.refuse("cronjob/report", apierrors.NewForbidden(batchv1.Resource("cronjobs"), "report", why))
	s.observe("secret/db")
}

// startOne has a change start a Job, and returns it.
func startOne(s *scene) *batchv1.Job {
	s.Helper()
	s.settled("secret/db", "password", "two")
	s.wantTold("cronjob/report started content-changed", "cronjob/report completed rolled-out")
	jobs := s.jobs()
	for _, job := range jobs {
		if len(jobs) == 1 {
			return job
		}
	}
	s.Fatalf("there are %d Jobs, want one", len(jobs))
	return nil
}

func TestWhatAnotherLeaderHasStartedJobsForIsNotStartedAgain(t *testing.T) {
	for _, tt := range []struct {
		name string
		// forget loses all that says so, except one.
		forget func(s *scene, started *batchv1.Job)
		jobs   int
	}{
		{"its Jobs say so, after a loss of the stream", func(s *scene, _ *batchv1.Job) { s.loseEvents() }, 1},
		{"only an outcome says so", func(s *scene, started *batchv1.Job) {
			s.loseEvents("secret/db")
			s.deleteJob(started.Name)
		}, 0},
	} {
		playOf(t, tt.name, func(s *scene) {
			startsJobs(s)
			first := s.start()
			s.pass(time.Minute)
			job := startOne(s)
			first.stop()
			tt.forget(s, job)
			s.again("secret/db")
			s.restartFor(time.Minute)
			s.wantTold()
			if got := len(s.jobs()); got != tt.jobs {
				s.Errorf("there are %d Jobs, want %d", got, tt.jobs)
			}
			s.settled("secret/db", "password", "three")
			s.wantTold("cronjob/report started content-changed", "cronjob/report completed rolled-out")
			if got := len(s.jobs()); got != tt.jobs+1 {
				s.Errorf("there are %d Jobs after the next change, want %d", got, tt.jobs+1)
			}
		})
	}
}

func TestAJobWithTheRecordOfItsCronJobIsNotReported(t *testing.T) {
	play(t, func(s *scene) {
		startsJobs(s)
		s.options.RecreateJobs = true
		s.observe("secret/other") // The stream is known to have everything since this one.
		s.startFor(time.Minute)
		started := startOne(s)
		// Nor is another Job with the same record.
		s.job("lonely")
		s.editJob("lonely", func(job *batchv1.Job) {
			job.Annotations = started.Annotations
			s.storage.writes(workload.FieldManager)
		})
		s.restartFor(time.Minute)
		s.wantTold()
	})
}
