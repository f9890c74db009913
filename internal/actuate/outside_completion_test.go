//go:build !race

package actuate_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/actuate"
)

func TestAPatchThatIsDeniedIsToldOnceAndTriedUntilItIsAccepted(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.refuse("web", deniedByAdmission())
		s.set("secret/db", "password", "two")
		s.pass(30 * time.Second) // The sixth is 31 seconds after the first.
		s.wantTold()
		s.pass(10 * time.Second)
		s.wantTold("web failed patch-denied")
		s.wantLast("web", "failed patch-denied", "not today")
		s.pass(3 * time.Hour)
		s.wantRolls()
		s.wantTold()
		s.refuse("web", nil)
		s.pass(11*time.Minute + 5*time.Second)
		s.wantRolls("web")
		s.wantRecord("web", "secret/db")
		s.wantTold("web started content-changed", "web completed rolled-out")
	})
}

// Who refuses does not matter: the API server answers with the same status.
func TestWhatIsRefusedForTenMinutesRollsOnceWhenItIsAccepted(t *testing.T) {
	for name, why := range map[string]string{
		"by a policy":  "ValidatingAdmissionPolicy 'freeze' with binding 'freeze' denied request: change freeze until Monday",
		"by a webhook": "admission webhook \"freeze.example.com\" denied the request: change freeze until Monday",
		"by a quota":   "exceeded quota: most, requested: limits.memory=2Gi, used: limits.memory=7Gi, limited: limits.memory=8Gi",
	} {
		playOf(t, name, func(s *scene) {
			workloads := []string{"api", "web", "worker"}
			for _, w := range workloads {
				s.workload(w, auto, reads("secret/db"))
			}
			s.begin("secret/db")
			for _, w := range workloads {
				s.refuse(w, forbidden(why))
			}
			s.set("secret/db", "password", "two")
			s.pass(10 * time.Minute)
			s.wantRolls()
			s.wantTold("api failed patch-denied", "web failed patch-denied", "worker failed patch-denied")
			for _, w := range workloads {
				s.refuse(w, nil)
			}
			s.pass(11*time.Minute + 5*time.Second)
			s.wantRolls(workloads...)
			for _, w := range workloads {
				s.wantLast(w, "completed rolled-out", "")
			}
			s.pass(3 * time.Hour)
			s.wantRolls()
		})
	}
}

func TestAPatchThatIsDeniedIsTriedAtOnceWhenTheWorkloadOrTheContentChanges(t *testing.T) {
	for name, changes := range map[string]func(*scene){
		"the workload has another image":  func(s *scene) { s.edit("web", image("example.com/app:2")) },
		"somebody annotates the workload": func(s *scene) { s.edit("web", annotated("example.com/exempt", "true")) },
		"the source changes again":        func(s *scene) { s.set("secret/db", "password", "three") },
	} {
		playOf(t, name, func(s *scene) {
			s.beginWeb()
			s.refuse("web", deniedByAdmission())
			s.set("secret/db", "password", "two")
			s.pass(time.Hour)
			s.wantTold("web failed patch-denied")
			s.refuse("web", nil)
			changes(s)
			s.settle()
			s.wantRecord("web", "secret/db")
		})
	}
}

func TestOnlyDenialsCountUntilThatIsTold(t *testing.T) {
	play(t, func(s *scene) {
		s.options.Jobs = []string{actuate.JobsRecreate}
		s.job("import", auto, reads("secret/db"))
		s.job("import-keyturn") // Another Job has the name that is needed.
		s.begin("secret/db")
		mend := s.onPatch(func(k8stesting.PatchActionImpl) (bool, runtime.Object, error) { return true, nil, unavailable() })
		s.set("secret/db", "password", "two")
		s.pass(10 * time.Minute) // That is twice as many attempts as there may be denials.
		s.wantTold()
		mend()
		s.pass(30 * time.Second) // The sixth is 31 seconds after the first, which may come a minute later.
		s.wantTold()
		s.pass(80 * time.Second)
		s.wantTold("job/import failed patch-denied")
	})
}

func TestAChangeThatConcernsAWorkloadWaitsUntilItIsQuiet(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.set("secret/db", "password", "two")
		s.pass(600 * time.Millisecond)
		s.set("secret/db", "password", "three")
		s.pass(900 * time.Millisecond)
		s.wantRolls()
		s.pass(200 * time.Millisecond)
		s.wantRolls("web")
		s.wantRolledForLast("web", "secret/db")
		s.pass(time.Minute)
		s.wantRolls()
		s.wantTold("web started content-changed", "web completed rolled-out")
	})
}

func TestAChangeWaitsNoLongerForQuietThanTheLimit(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		for i := range 20 {
			s.set("secret/db", "password", strconv.Itoa(i))
			s.pass(490 * time.Millisecond)
		}
		s.wantRolls() // 9.8 s after the first change
		s.set("secret/db", "password", "last")
		s.pass(400 * time.Millisecond)
		s.wantRolls("web")
		s.wantRolledForLast("web", "secret/db")
		s.pass(time.Minute)
		s.wantRolls()
	})
}

func TestANewChangeDoesNotShortenTheDelayAfterAFailure(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.refuse("web", errors.New("no"))
		s.set("secret/db", "password", "two")
		s.pass(s.options.Settle)
		s.pass(35 * time.Second) // The next attempt comes 63 to 70 seconds after the first one.
		s.refuse("web", nil)
		s.set("secret/db", "password", "three")
		s.pass(25 * time.Second)
		s.wantRolls()
		s.pass(10 * time.Second)
		s.wantRolls("web")
		s.wantRolledForLast("web", "secret/db")
	})
}

// The pods of before were never replaced.
func TestWhatNewerPodsMakeNeedlessRollsWhenTheyAreTakenBack(t *testing.T) {
	play(t, func(s *scene) {
		s.options.RolloutTimeout = 24 * time.Hour
		s.beginWeb()
		s.stall("web")
		s.set("secret/db", "password", "two")
		s.edit("web", image("example.com/app:bad"))
		s.pass(time.Minute)
		s.wantRolls()
		s.wantTold()
		s.edit("web", image("example.com/app"))
		s.pass(time.Hour)
		s.wantRolls("web")
		s.wantTold("web started content-changed")
	})
}

// The workload is written after the change, by the resourceVersions, and an hour before it, by the clock.
func TestVersionsThatCannotBeComparedAreLoggedOnce(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		for _, value := range []string{"two", "three"} {
			s.set("secret/db", "password", value)
			s.writeAt(time.Now().Add(-time.Hour), "kubectl", "web", image("example.com/app:"+value))
			s.settle()
			s.wantRolls("web")
			if n := strings.Count(s.logText(), "not comparable"); n != 1 {
				s.Errorf("it is logged %d times, want once", n)
			}
			s.pass(time.Minute) // What the actuator writes is no newer than the next change.
		}
	})
}

func TestADryRunReportsWhatWouldWait(t *testing.T) {
	for want, act := range map[string]func(*scene){
		"web skipped up-to-date": func(s *scene) { // The pods that are being replaced will be newer than the change.
			s.stall("web")
			dbChanges(s)
			s.edit("web", image("example.com/app:2"))
		},
		"web skipped on-hold": func(s *scene) { s.set("secret/db", "password", "two", sourceHeld("tofu apply")) },
	} {
		playOf(t, want, func(s *scene) {
			s.options.DryRun = true
			s.beginWeb()
			act(s)
			s.settle()
			s.wantTold(want)
			s.pass(time.Minute)
			s.wantNothing()
		})
	}
}
