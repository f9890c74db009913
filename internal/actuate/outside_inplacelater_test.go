//go:build !race

package actuate_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAskingPodsToReloadTakesNoWorkerFromPatches(t *testing.T) {
	play(t, func(s *scene) {
		pods := s.askPods()
		s.options.ReloadInPlace, s.options.PatchWorkers = time.Nanosecond, 4
		for _, namespace := range []string{"", "bank/", "tower/"} {
			for i := range 4 {
				name := namespace + "web-" + strconv.Itoa(i)
				pods.of(name)
				pods.answer(name, silent)
			}
		}
		s.readers("secret/other", "other", "park/other")
		s.begin("secret/db", "bank/secret/db", "tower/secret/db", "secret/other", "park/secret/other")
		s.settled("secret/db", "password", "two")
		pods.wantAsking(namespace, 2) // One namespace takes half of the places.
		s.set("bank/secret/db", "password", "two")
		s.set("tower/secret/db", "password", "two")
		s.set("secret/other", "password", "two")
		s.settled("park/secret/other", "password", "two")
		pods.wantAsking(namespace, 2)
		pods.wantAsking("bank", 1)
		pods.wantAsking("tower", 1)
		s.wantRolls("other", "park/other")
	})
}

func TestPodsAreReplacedIfTheirSourceChangesAllTheTime(t *testing.T) {
	play(t, func(s *scene) {
		pods := s.beginInPlace(2 * time.Minute)
		s.set("secret/db", "password", "0")
		for i := range 7 { // In three times the delay, the files are not new once.
			if i < 5 {
				s.wantRolls()
			}
			s.pass(time.Minute)
			s.set("secret/db", "password", strconv.Itoa(i+1))
		}
		pods.wantAsked("web", 0)
		s.wantRolls("web")
		s.wantSaid("content-changed", "; not in place: its sources change too often")
	})
}

func TestPodsAreNotAskedTooEarlyIfTheClockOfTheWatcherIsBehind(t *testing.T) {
	play(t, func(s *scene) {
		pods := s.beginInPlace(2 * time.Minute)
		s.set("secret/db", "password", "two", func(change *events.Change) { change.Time = change.Time.Add(-time.Hour) })
		s.pass(s.options.ReloadInPlace - time.Second)
		pods.wantAsked("web", 0)
		s.wantTold("web held files-pending")
		s.pass(2 * time.Second)
		pods.wantAsked("web", 1)
		s.wantTold("web completed reloaded-in-place")
	})
}

func TestPodsOfWhichOneIsNotReadyAreAskedForAWhileBeforeTheyAreReplaced(t *testing.T) {
	play(t, func(s *scene) {
		pods := s.beginInPlace(time.Nanosecond)
		pods.unready("web")
		pods.answer("web", http.StatusInternalServerError)
		s.set("secret/db", "password", "two")
		// One attempt makes five requests within 15 seconds, and the waits between the first seven attempts are a minute together.
		s.pass(2 * time.Minute)
		s.wantRolls()
		s.pass(10 * time.Minute)
		pods.wantAsked("web", 7*5)
		s.wantRolls("web")
		s.wantSaid("content-changed", "; not in place: not every pod confirmed the reload: pod web-1: it is not ready: ")
	})
}

func TestTheDelayOfAReloadIsNoTimeThatAChangeTook(t *testing.T) {
	play(t, func(s *scene) {
		pods, seen := s.askPods(), s.instrument()
		pods.of("web")
		pods.answer("web", http.StatusInternalServerError)
		pods.of("reloads")
		s.begin("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(s.options.ReloadInPlace + time.Minute)
		s.wantRolls("web")
		// The attempts to reach the pods take 15 seconds. Whether pods have reloaded, nobody has seen.
		for _, histogram := range []string{"keyturn.change.patch.duration", "keyturn.change.ready.duration"} {
			if count, sum := seen.spent(histogram); count != 1 || sum > 30 {
				s.Errorf("%s: %d times took %v s, want once, at most 30 s", histogram, count, sum)
			}
		}
	})
}

func TestWhoComesAfterAReloadInPlaceGoesOnceThePodsHaveAnswered(t *testing.T) {
	for _, tt := range []struct {
		name   string
		wave   int
		canary time.Duration
		held   string
	}{
		{"in a higher wave", 1, 0, "worker held lower-wave"},
		{"after the canary", 0, 5 * time.Minute, "worker held canary-first"},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.options.Canary = tt.canary
			pods := s.askPods()
			pods.of("web")
			pods.answer("web", http.StatusInternalServerError)
			s.workload("worker", auto, inWave(tt.wave), mountsSecret("db"))
			s.begin("secret/db")
			s.set("secret/db", "password", "two")
			s.pass(s.options.ReloadInPlace + 5*time.Second)
			s.wantRolls() // The pods are asked to reload.
			s.wantTold("web held files-pending", tt.held)
			pods.answer("web", http.StatusOK)
			s.pass(5 * time.Second)
			s.wantRolls("worker")
			s.wantTold("web completed reloaded-in-place", "worker started content-changed", "worker completed rolled-out")
		})
	}
}

func TestAReloadInPlaceThatHasBegunIsFinishedAndRecordedDespiteAHold(t *testing.T) {
	play(t, func(s *scene) {
		pods := s.beginInPlace(time.Nanosecond)
		pods.answer("web", silent)
		s.settled("secret/db", "password", "two")
		pods.wantAsking(namespace, 1)
		s.edit("web", onHold)
		s.pass(time.Second)
		pods.answer("web", http.StatusOK)
		s.pass(10 * time.Second)
		s.wantRolls()
		s.wantTold("web completed reloaded-in-place")
		s.wantRecord("web", "secret/db")
	})
}
