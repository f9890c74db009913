//go:build !race

package actuate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
)

// An operator that knows nothing of a roll restores the pod template of before, again and again, while the new pods start.
func TestARollThatIsRevertedIsRepeatedAndAtLastGivenUp(t *testing.T) {
	play(t, func(s *scene) {
		s.beginReading("secret/db#password")
		s.stall("web")
		s.settled("secret/db", "password", "two")
		delays := []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}
		revisions := map[string]bool{}
		for round := range plan.RevertRetries + 1 {
			s.wantRolls("web")
			s.revert("web")
			last, next := s.lastOf("web"), "it is not rolled again for this change"
			if round < len(delays) {
				next = "it is rolled again in " + delays[round].String()
			}
			if !strings.Contains(last.Message, `"operator"`) || !strings.Contains(last.Message, next) {
				s.Errorf("round %d: the message is %q, want who reverted it, and that %s", round, last.Message, next)
			}
			revisions[last.Revision] = true
			if round < len(delays) {
				s.pass(delays[round] - 10*time.Second)
				s.wantRolls()
				s.pass(15 * time.Second)
			}
		}
		if len(revisions) != plan.RevertRetries+1 {
			s.Errorf("there are %d revisions, want one for each roll", len(revisions))
		}
		s.pass(time.Hour)
		s.wantRolls()
		s.wantTold()

		s.set("secret/db", "user", "two") // which web does not read: for web, that is the same change
		s.settle()
		s.wantRolls()
		s.wantTold("web skipped reverted")
		s.rotate("three", "web")
	})
}

func TestARevertedRollLeavesTheRecordOfBefore(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		before := s.annotation("web", annotationRecord)
		if before == "" {
			s.Fatal("the first content is not recorded")
		}
		s.stall("web")
		s.rotate("two", "web")
		if s.annotation("web", annotationRecord) == before {
			s.Fatal("the roll is not recorded")
		}
		s.revert("web")
		if got := s.annotation("web", annotationRecord); got != before {
			s.Errorf("the record is %s, want %s", got, before)
		}
		// The next leader does not know whether pods with the other content are left.
		s.loosen("web")
		s.restart()
		s.set("secret/db", "password", "one")
		s.pass(time.Hour)
		s.wantRolls("web")
		s.wantTold("web started content-changed", "web completed rolled-out")
	})
}

func TestARollThatAdmissionStripsIsDenied(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		before := s.annotation("web", annotationRecord)
		allow := s.strip()
		s.set("secret/db", "password", "two")
		s.pass(30 * time.Second)
		s.wantTold()
		if got := s.annotation("web", annotationRecord); got != before {
			s.Errorf("the record is %s, want %s", got, before)
		}
		s.pass(10 * time.Second)
		s.wantTold("web failed patch-denied")
		s.wantLast("web", "failed patch-denied", "webhook")
		s.pass(time.Hour)
		s.wantRolls()
		s.wantTold()
		if got := s.annotation("web", annotationRecord); got != before {
			s.Errorf("after an hour, the record is %s, want %s", got, before)
		}
		allow()
		s.rotate("three", "web")
	})
}

// shadowLook is longer than it takes until the leader looks for Jobs that were left behind.
const shadowLook = 6 * time.Second

// leftBehind has an actuator begin to roll the Job import, and end when it has deleted that. It returns the UID that the Job had.
func leftBehind(s *scene) types.UID {
	s.Helper()
	s.options.Jobs = []string{actuate.JobsRecreate}
	s.job("import", auto, reads("secret/db"))
	uid := s.jobs()["import"].UID
	s.observe("secret/db")
	first := s.start()
	s.intercept("create", "jobs", func(action k8stesting.Action) (bool, runtime.Object, error) {
		create, ok := action.(k8stesting.CreateAction)
		if !ok || metaOf(create.GetObject()).GetName() != "import" {
			return false, nil, nil
		}
		return true, nil, errors.New("no answer")
	})
	s.pass(time.Minute)
	s.settled("secret/db", "password", "two")
	first.kill()
	s.wantJobs("import-keyturn")
	s.wantTold()
	return uid
}

func TestAJobThatIsRestoredIsReportedOnce(t *testing.T) {
	play(t, func(s *scene) {
		leftBehind(s)
		s.startFor(kube.PatchTimeout / 2)
		s.wantJobs("import-keyturn") // The first one may still create it.
		s.pass(time.Minute)
		s.wantJobs("import")
		s.wantTold("job/import started up-to-date", "job/import completed rolled-out")
		revision := s.jobs()["import"].Annotations["keyturn.dev/revision"]
		for _, outcome := range s.outcomesSoFar() {
			if outcome.Revision == "" || outcome.Revision != revision || len(outcome.Sources) != 1 || outcome.Sources[0].Source != "secret/db" {
				t.Errorf("got %+v, want the roll of the Job to %s", outcome, revision)
			}
		}
		s.wantRolls()
		s.restartFor(time.Hour)
		s.wantNothing()
	})
}

// A deletion that the API server has not answered may be carried out after the actuator that sent it has ended.
func TestAManifestIsKeptForAWhileIfItsJobWasNotDeleted(t *testing.T) {
	play(t, func(s *scene) {
		uid := leftBehind(s)
		s.job("import", withUID(uid)) // It has not been deleted yet.
		s.startFor(kube.PatchTimeout + shadowLook)
		s.wantJobs("import", "import-keyturn")
		s.pass(40 * time.Second)
		s.wantJobs("import", "import-keyturn")
		s.pass(30 * time.Second)
		s.wantJobs("import") // No deletion is on its way any more.
		s.wantTold()
	})
}

// startsJobs makes the CronJob report, of which changes start Jobs, and on which nothing may be written: Reloader's own role does not allow that.
func startsJobs(s *scene) {
	s.options.Reloader.On, s.options.Jobs = true, []string{actuate.JobsStart}
	s.cronJob("report", false)
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
