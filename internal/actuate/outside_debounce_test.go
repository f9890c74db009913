//go:build !race

package actuate_test

import (
	"errors"
	"strconv"
	"testing"
	"time"
)

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

func TestAFailedPatchIsTriedAgainWithWhatCameSince(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db", "configmap/app"))
		s.begin("secret/db", "configmap/app")
		s.refuse("web", errors.New("no"))
		s.settled("secret/db", "password", "two")
		s.set("configmap/app", "password", "two")
		s.set("secret/db", "password", "three")
		s.pass(10 * time.Second)
		s.wantRolls()
		s.refuse("web", nil)
		s.pass(time.Minute)
		s.wantRolls("web")
		s.wantRolledForLast("web", "secret/db", "configmap/app")
		s.restartFor(time.Minute)
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
