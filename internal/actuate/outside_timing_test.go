//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestWhyAWorkloadRestsIsToldAgainOnlyForAnotherChange(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb(onHold)
		s.settled("secret/db", "password", "two")
		s.wantTold("web held on-hold")
		s.pass(15 * time.Minute) // The stream does not recognize it as told any more.
		next := s.restart()
		s.pass(time.Minute)
		s.wantTold()
		next.stop()
		s.set("secret/db", "password", "three")
		s.startFor(time.Minute)
		s.wantTold("web held on-hold")
		s.wantRolls()
	})
}

func TestASourceOnHoldRollsNothingUntilTheHoldIsTakenOff(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.workload("now", auto, reads("secret/db"), annotated(workload.AnnotationRollNow, "1"))
		s.begin("secret/db")
		s.settled("secret/db", "password", "two", sourceHeld("migration"))
		s.wantRolls("now") // Somebody has asked for it.
		s.wantTold("now started content-changed", "now completed rolled-out", "web held on-hold")
		s.wantLast("web", "held on-hold", "somebody has put the source on hold: secret/db: migration")
		s.set("secret/db", "password", "three", sourceHeld("migration"))
		s.pass(time.Minute)
		s.wantRolls()
		s.wantTold("now held on-hold")
		s.mark("secret/db")
		s.settle()
		s.wantRolls("now", "web")
		s.wantRolledForLast("now", "secret/db")
		s.wantRolledForLast("web", "secret/db")
	})
}

func TestAskedToRollNowAWorkloadOnHoldRollsOnceForEachValue(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb(onHold)
		s.settled("secret/db", "password", "two")
		s.wantTold("web held on-hold")
		s.edit("web", annotated(workload.AnnotationRollNow, "1")) // after the change
		s.settle()
		s.wantRolls("web")
		s.wantTold("web started content-changed", "web completed rolled-out")
		if got := s.annotation("web", "keyturn.dev/rolled-now"); got != "1" {
			s.Errorf("what is recorded of it is %q", got)
		}
		s.set("secret/db", "password", "three")
		s.pass(time.Minute)
		s.wantRolls()
		s.wantTold("web held on-hold")
		s.edit("web", annotated(workload.AnnotationRollNow, "2"))
		s.settle()
		s.wantRolls("web")
		s.wantTold("web started content-changed", "web completed rolled-out")
		s.edit("web", annotated(workload.AnnotationRollNow, "3")) // before the change, which rolls nothing
		s.pass(time.Minute)
		s.wantRolls()
		s.rotate("four", "web")
		s.wantTold("web started content-changed", "web completed rolled-out")
	})
}

func TestWhatWaitsForPeopleGoesAtOnceWhenTheyHaveChangedItsWorkload(t *testing.T) {
	const pause = "deployment.reloader.stakater.com/pause-period"
	for _, tt := range []struct {
		name    string
		options func(*actuate.Options)
		// on is what the workload waits for, auto if that is its source.
		on aspect
		// held puts the source on hold.
		held bool
		want string
		then aspect
	}{
		{name: "a hold", on: onHold, want: "held on-hold", then: letGo},
		{name: "a hold of its source", on: auto, held: true, want: "held on-hold", then: annotated(workload.AnnotationRollNow, "1")},
		{
			name: "a window", on: annotated(workload.AnnotationWindow, "0 3 * * * for 1h"), want: "held window-closed",
			then: without(workload.AnnotationWindow),
		},
		{
			name: "a pause", options: func(o *actuate.Options) { o.Reloader.On = true }, on: annotated(pause, "30s"), want: "held pause-period",
			then: without(pause),
		},
	} {
		playOf(t, tt.name, func(s *scene) {
			if tt.options != nil {
				tt.options(&s.options)
			}
			s.beginWeb(tt.on)
			s.set("secret/db", "password", "three", func(change *events.Change) {
				if tt.held {
					change.Hold = "migration"
				}
			})
			s.pass(3 * time.Second)
			s.wantRolls()
			s.wantLast("web", tt.want, "")
			s.edit("web", tt.then)
			s.pass(100 * time.Millisecond)
			s.wantRolls("web")
		})
	}
}

func TestAWorkloadWaitsForItsWindow(t *testing.T) {
	// Berlin is an hour ahead, so this window opens half past one.
	const nightly = "30 2 * * * for 1h Europe/Berlin"
	for _, tt := range []struct{ name, flag, on string }{
		{name: "of its annotation", on: nightly},
		{name: "of the flag", flag: nightly},
		{name: "of the flag if the annotation is empty", flag: nightly, on: " "},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.options.Window = tt.flag
			s.beginWeb(annotated(workload.AnnotationWindow, tt.on))
			s.rotate("two")
			s.wantTold("web held window-closed")
			s.wantLast("web", "held window-closed", nightly)
			s.wantHeldUntilWindow("web", midnight.Add(90*time.Minute))
			s.passUntil(s.heldUntil("web").Add(-time.Second))
			s.wantRolls()
			s.pass(2 * time.Second)
			s.wantRolls("web")
		})
	}
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
