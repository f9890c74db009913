//go:build !race

package actuate_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAWorkloadOnHoldRollsOnceForWhatIsPendingWhenTheHoldIsTakenOff(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"), annotated(events.AnnotationHold, "tofu\napply"))
		s.begin("secret/db")
		s.settled("secret/db", "password", "two")
		s.wantTold("web held on-hold")
		s.wantLast("web", "held on-hold", "somebody has put the workload on hold: tofu apply")
		s.restart() // What is on the stream and on the workload says so to the next leader.
		s.pass(time.Minute)
		s.rotate("three")
		s.edit("web", letGo)
		s.settle()
		s.wantRolls("web")
		s.wantTold("web started content-changed", "web completed rolled-out")
		s.wantRolledForLast("web", "secret/db")
		s.restartFor(time.Hour)
		s.wantNothing()
	})
}

func TestAWorkloadThatGetsNoSlotWhileItsWindowIsOpenWaitsForTheNext(t *testing.T) {
	play(t, func(s *scene) {
		s.options.Window, s.options.MaxRollouts, s.options.RolloutTimeout = "30 * * * * for 10m", 1, 24*time.Hour
		s.workload("web", auto, reads("secret/db"))
		s.workload("bank/other", auto, reads("secret/db"), annotated(workload.AnnotationWindow, "always"))
		s.begin("secret/db", "bank/secret/db")
		s.stall("bank/other")
		s.settled("bank/secret/db", "password", "two")
		s.wantRolls("bank/other")
		s.passUntil(midnight.Add(35 * time.Minute))
		s.settled("secret/db", "password", "two")
		s.wantLast("web", "held limit-reached", "")
		s.passUntil(midnight.Add(45 * time.Minute))
		s.finish("bank/other")
		s.settle()
		s.wantRolls()
		s.wantHeldUntilWindow("web", midnight.Add(90*time.Minute))
		s.passUntil(s.heldUntil("web").Add(-time.Second))
		s.wantRolls()
		s.pass(2 * time.Second)
		s.wantRolls("web")
	})
}

// The source changes each hour while the workload is on hold.
func TestALongHoldIsNotedAsLongAndNotAsLate(t *testing.T) {
	const hours = 9
	play(t, func(s *scene) {
		seen := s.instrument()
		s.workload("web", auto, reads("secret/db"), onHold)
		s.begin("secret/db")
		for hour := range hours {
			s.set("secret/db", "password", strconv.Itoa(hour))
			s.pass(time.Hour)
		}
		if oldest, _ := seen.measurements().value("keyturn.workloads.held.oldest", "reason", "on-hold"); oldest < hours*3600-10 || oldest > hours*3600 {
			s.Errorf("it has waited for %d s, want %d hours", oldest, hours)
		}
		s.refuse("web", errors.New("no"))
		s.edit("web", letGo)
		s.pass(2 * time.Second) // Two attempts are refused, and the third one comes three seconds after the first.
		s.refuse("web", nil)
		s.pass(10 * time.Second)
		s.wantRolls("web")
		for _, name := range []string{"keyturn.change.patch.duration", "keyturn.change.ready.duration"} {
			if count, sum := seen.spent(name); count != 1 || sum < 3 || sum > 3.5 {
				s.Errorf("%s: %d times, %g s together; want once, three seconds", name, count, sum)
			}
		}
	})
}

func TestASourceOnHoldDelaysNoRecordOfAnother(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", on("secret/db, configmap/app"), reads("secret/db", "configmap/app"))
		s.begin("secret/db", "configmap/app")
		s.set("configmap/app", "password", "two")
		s.edit("web", image("example.com/app:2")) // Its pods are newer than this change.
		s.settled("secret/db", "password", "two", sourceHeld("migration"))
		s.wantRolls()
		s.wantTold("web held source-on-hold")
		s.pass(time.Minute)
		s.wantTold("web skipped pods-newer")
		if record := s.recordOf("web")["configmap/app"]; !strings.Contains(record, "@"+s.of("configmap/app").published.ResourceVersion+"/") {
			s.Errorf("the record says of configmap/app %q, want what the pods have", record)
		}
		s.restartFor(time.Minute)
		s.wantRolls()
		s.wantTold() // It was told last.
		s.mark("secret/db")
		s.settle()
		s.wantRolls("web")
		s.wantRolledForLast("web", "secret/db")
	})
}

func TestTheEndOfARolloutLetsWhatWaitsForItGoAtOnce(t *testing.T) {
	tests := []struct {
		name    string
		options func(*actuate.Options)
		// wave is that of the workload that waits. fails says that the rollout has failed before it is complete after all.
		wave  int
		fails bool
		waits string
	}{
		{name: "for that of a lower wave", wave: 1, waits: "held lower-wave"},
		{name: "for that of the one that goes first", options: func(o *actuate.Options) { o.Canary, o.Bake = true, 0 }, waits: "held canary-first"},
		{
			name: "for its slot", options: func(o *actuate.Options) { o.MaxRollouts, o.Namespaces = 1, []string{namespace} },
			waits: "held limit-reached",
		},
		{name: "for its repair", wave: 1, fails: true, waits: "held peer-failed"},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			if tt.options != nil {
				tt.options(&s.options)
			}
			s.workload("first", auto, reads("secret/db"))
			s.workload("web", auto, reads("secret/db"), inWave(tt.wave))
			s.begin("secret/db")
			s.stall("first", "web")
			s.settled("secret/db", "password", "two")
			began := s.whoRolled()
			if len(began) != 1 {
				s.Fatalf("%v have begun, want one of the two", began)
			}
			other := map[string]string{"first": "web", "web": "first"}[began[0]]
			if tt.fails {
				s.fail(began[0])
				s.settle()
			}
			s.wantLast(other, tt.waits, "")
			s.finish(began[0])
			s.pass(100 * time.Millisecond)
			s.wantRolls(other)
		})
	}
}

// One that has not failed waits for the lower wave, and that waits for the repair.
func TestAWorkloadThatFailedNeedNotWaitForOneThatWaitsForItsRepair(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("waits", auto, reads("secret/db", "configmap/app"), onHold)
		s.workload("failed", auto, reads("secret/db", "configmap/app"), inWave(1))
		s.workload("other", auto, reads("configmap/app"), inWave(1))
		s.begin("secret/db", "configmap/app")
		s.stall("failed")
		s.rotate("two", "failed")
		s.fail("failed")
		s.settle()
		s.edit("waits", letGo)
		s.settle()
		s.wantRolls()
		s.wantLast("waits", "held peer-failed", "deployment/failed")
		s.loosen("failed")
		s.set("configmap/app", "password", "two") // the repair
		s.pass(10 * time.Second)
		if diff := cmp.Diff([]string{"failed", "waits", "other"}, s.whoRolled()); diff != "" {
			s.Errorf("rolled, in this order (-want +got):\n%s", diff)
		}
		s.wantAmongTold("waits held peer-failed", "other held lower-wave")
	})
}
