//go:build !race

package actuate_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/kube"
)

func TestAWorkloadWithoutARecordGetsOne(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.workload("silent", annotated("team", "a"), reads("secret/db"))
		s.begin("secret/db")
		s.wantWrites("web recorded")
		s.wantRecord("web", "secret/db")
		s.pass(time.Hour)
		s.wantNothing()
		s.settled("secret/db", "password", "two")
		s.wantWrites("web rolled")
		s.wantTold("web started content-changed", "web completed rolled-out")
		// The change was before it.
		s.workload("late", auto, reads("secret/db"))
		s.pass(time.Minute)
		s.wantWrites("late recorded")
		s.wantRecord("late", "secret/db")
		s.pass(time.Hour)
		s.wantNothing()
	})
}

func TestWhatIsNotSettledIsRecordedLater(t *testing.T) {
	tests := []struct {
		name            string
		prepare, settle func(*scene)
		want            []string
	}{
		{
			"a workload with a pending change",
			func(s *scene) {
				s.workload("web", auto, onHold, reads("secret/db", "configmap/app"))
				s.begin("secret/db")
				s.set("secret/db", "password", "two")
				s.pass(10 * time.Second)
				s.observe("configmap/app")
				s.soFar()
			},
			func(s *scene) { s.edit("web", letGo) },
			[]string{"web recorded", "web rolled"},
		},
		{
			"a workload that is written meanwhile, again and again",
			func(s *scene) {
				s.workload("web", auto, reads("secret/db"))
				s.observe("secret/db")
				s.refuse("web", kube.NotApplied())
				s.start()
			},
			func(s *scene) { s.refuse("web", nil) },
			[]string{"web recorded"},
		},
	}
	for _, test := range tests {
		playOf(t, test.name, func(s *scene) {
			test.prepare(s)
			s.pass(5 * time.Minute)
			s.wantWrites()
			test.settle(s)
			s.pass(15 * time.Minute)
			s.wantWrites(test.want...)
		})
	}
}

// It has no record yet, and has opted in before the change.
func TestAChangeThatALeaderHadInItsWindowWhenItDiedIsRolledAndNotRecorded(t *testing.T) {
	play(t, func(s *scene) {
		s.options.LeaderElect, s.options.Settle, s.options.SettleMax = true, 30*time.Second, time.Minute
		s.workload("web", reads("secret/db"))
		s.observe("secret/db")
		first := s.start()
		s.startFor(time.Minute)
		s.refuse("web", errors.New("it gets no record"))
		s.edit("web", auto)
		s.set("secret/db", "password", "two")
		s.pass(5 * time.Second)
		first.kill()
		s.refuse("web", nil)
		s.pass(25 * time.Second)
		s.wantNothing()
		s.pass(time.Minute)
		s.wantWrites("web rolled")
		s.wantRecord("web", "secret/db")
		s.wantTold("web started content-changed", "web completed rolled-out")
	})
}

func TestADryRunRecordsNothing(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.options.DryRun = true
		s.workload("web", auto, reads("secret/db"))
		s.observe("secret/db")
		s.start()
		if got, ok := seen.measurements().value("keyturn.dry.run", "", ""); !ok || got != 1 {
			s.Errorf("keyturn.dry.run is %d, there: %t, want 1", got, ok)
		}
		s.pass(time.Hour)
		s.wantNothing()
		s.set("secret/db", "password", "two")
		s.pass(time.Hour)
		s.wantWrites()
		s.wantTold("web skipped dry-run")
	})
}

// With another pod template, the pods have what they were to be rolled for, which is recorded otherwise.
func TestADryRunRecordsNothingAfterARollThatWasReverted(t *testing.T) {
	play(t, func(s *scene) {
		s.rolling()
		s.revert("web")
		s.options.DryRun = true
		s.restartFor(time.Minute)
		s.soFar()
		s.edit("web", image("example.com/app:2"))
		s.pass(time.Hour)
		s.wantWrites()
	})
}

func TestARecordThatIsRemovedAgainAndAgainIsWrittenEverMoreSeldom(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.wantWrites("web recorded")
		var counts []int
		for range 2 {
			for range 4 * 12 {
				s.pass(5 * time.Minute)
				s.edit("web", without(annotationRecord))
			}
			counts = append(counts, len(s.writesSince(&s.seen)))
		}
		if counts[0] < 3 || counts[0] > 15 || counts[1] > 2 {
			s.Errorf("removed every five minutes, it is written %v times in four hours each", counts)
		}
		// It may opt in to more sources at any time.
		s.edit("web", without(annotationRecord), on("auto, configmap/app"))
		s.pass(2 * time.Minute)
		s.wantWrites("web recorded")
		s.wantTold()
	})
}

func TestRecordsArePacedAndTakeNoPlaceOfRolls(t *testing.T) {
	const count, pause = 40, 50 * time.Millisecond
	play(t, func(s *scene) {
		s.options.PatchWorkers = 1
		s.workload("web", auto, reads("configmap/app"))
		s.begin("secret/db", "configmap/app")
		s.wantWrites("web recorded")
		s.set("configmap/app", "mode", "fast")
		for i := range count {
			s.workload(fmt.Sprintf("new-%d", i), auto, reads("secret/db"))
		}
		s.settle()
		soon := s.writesSince(&s.seen)
		s.pass(time.Minute)
		all := append(soon, s.writesSince(&s.seen)...)
		records, rolled, last := 0, false, time.Time{}
		for i, w := range all {
			if w.rolls {
				rolled = w.workload == "web" && i < len(soon)
				continue
			}
			if records++; w.at.Sub(last) < pause {
				s.Errorf("%s gets its record %s after another one", w.workload, w.at.Sub(last))
			}
			last = w.at
		}
		if !rolled || records != count {
			s.Errorf("web is rolled in time: %t, and %d get a record, want %d", rolled, records, count)
		}
		if len(soon) > count/2+10 {
			s.Errorf("%d patches are sent in a second", len(soon))
		}
	})
}
