//go:build !race

package actuate_test

import (
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// shadowLook is longer than it takes until the leader looks for Jobs that were left behind.
const shadowLook = 6 * time.Second

func TestTheManifestThatAnotherActuatorKeepsIsLeftToItForAWhile(t *testing.T) {
	play(t, func(s *scene) {
		s.options.RecreateJobs = true
		s.shadow("import-keyturn", "import/u")
		s.observe("secret/db")
		s.startFor(10 * time.Second)
		s.wantJobs("import-keyturn")
		// A later attempt keeps it again.
		s.deleteJob("import-keyturn")
		s.shadow("import-keyturn", "import/u")
		s.pass(kube.PatchTimeout - time.Second)
		s.wantJobs("import-keyturn")
		s.pass(time.Second + shadowLook)
		s.wantJobs("import")
		if job := s.jobs()["import"]; job == nil || *job.Spec.Suspend {
			t.Errorf("the Job is %+v", job)
		}
		s.pass(time.Hour)
		s.wantJobs("import")
	})
}

func TestAManifestIsKeptWhileItsJobIsStillToBeRolled(t *testing.T) {
	play(t, func(s *scene) {
		s.options.RecreateJobs = true
		s.job("import", auto, reads("secret/db"), annotated(events.AnnotationHold, "audit"), withUID("u"))
		s.begin("secret/db")
		s.settled("secret/db", "password", "two")
		s.wantTold("job/import held on-hold")
		s.shadow("import-keyturn", "import/u")
		s.pass(10 * time.Minute)
		s.wantJobs("import", "import-keyturn") // The next attempt may be about to need it.
		s.set("secret/db", "password", "one")
		s.pass(time.Second)
		s.editJob("import", func(job *batchv1.Job) { delete(job.Annotations, events.AnnotationHold) })
		s.settle()
		s.wantTold("job/import skipped same-content")
		s.pass(2 * time.Minute)
		s.wantJobs("import") // There is no next attempt.
	})
}

// leftBehind has an actuator begin to roll the Job import, and end when it has deleted that. It returns the UID that the Job had.
func leftBehind(s *scene) types.UID {
	s.Helper()
	s.options.RecreateJobs = true
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
		s.startFor(time.Minute)
		s.wantJobs("import")
		s.wantTold("job/import started already-rolled", "job/import completed rolled-out")
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

func TestAJobThatSomeoneElseHasMadeIsNotReported(t *testing.T) {
	play(t, func(s *scene) {
		leftBehind(s)
		s.job("import")
		made := s.jobs()["import"].UID
		s.startFor(2 * time.Minute)
		s.wantJobs("import")
		if got := s.jobs()["import"].UID; got != made {
			t.Errorf("the Job is another one: %s, want %s", got, made)
		}
		s.wantTold()
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
