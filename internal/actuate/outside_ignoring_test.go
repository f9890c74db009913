//go:build !race

package actuate_test

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// ignoringTTL says of an event that the key ttl does not count.
func ignoringTTL(change *events.Change) {
	key := change.Keys["ttl"]
	key.Ignored = events.IgnoredByAnnotation
	change.Keys["ttl"] = key
}

// countingTTLAgain says of an event that the key ttl counts again.
func countingTTLAgain(change *events.Change) {
	key := change.Keys["ttl"]
	key.Since = change.ResourceVersion
	change.Keys["ttl"] = key
}

// credentials is what a source has for a static role.
func credentials() map[string]string {
	return map[string]string{"password": "one", "user": "app", "ttl": "5"}
}

func TestAWorkloadThatExcludesKeysRollsForTheOthersAlone(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", on("auto, !secret/db#ttl"), reads("secret/db"))
		s.workload("statefulset/reloader", annotated("reloader.stakater.com/auto", "true"), on("!secret/d*#ttl"), reads("secret/db"))
		s.workload("reads", on("auto, !secret/db#ttl"), reads("secret/db#ttl?", "secret/db#user"))
		s.find("secret/db", credentials())
		s.atRest()
		s.set("secret/db", "ttl", "4")
		s.pass(time.Minute)
		s.unset("secret/db", "ttl")
		s.pass(time.Minute)
		s.wantRolls()
		s.set("secret/db", "user", "web")
		s.pass(11 * time.Minute)
		s.wantRolls("web", "statefulset/reloader", "reads")
	})
}

func TestSayingWhichKeysCountRollsNobody(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.workload("names", on("secret/db#ttl"), reads("secret/db"))
		s.find("secret/db", credentials())
		s.atRest()
		s.mark("secret/db", ignoringTTL)
		s.pass(11 * time.Minute)
		s.wantRolls()
		s.set("secret/db", "ttl", "4", ignoringTTL)
		s.pass(11 * time.Minute)
		s.wantRolls("names")
		s.mark("secret/db", countingTTLAgain)
		s.pass(11 * time.Minute)
		s.restartFor(11 * time.Minute)
		s.wantRolls()
		s.set("secret/db", "ttl", "3")
		s.pass(11 * time.Minute)
		s.wantRolls("names", "web")
	})
}

func TestWhatAWorkloadWaitsForIsForgottenOnceItDoesNotCount(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"), onHold)
		s.find("secret/db", credentials())
		s.atRest()
		s.set("secret/db", "ttl", "4")
		s.pass(11 * time.Minute)
		s.mark("secret/db", ignoringTTL)
		s.pass(11 * time.Minute)
		s.edit("web", letGo)
		s.pass(11 * time.Minute)
		s.restartFor(11 * time.Minute)
		s.wantRolls()
	})
}

// It waits for a time, and is to be rolled for another source, too.
func TestAWorkloadIsLetGoAfterOneOfItsSourcesIsIgnored(t *testing.T) {
	play(t, func(s *scene) {
		s.beginReading("secret/db", "configmap/app")
		s.edit("web", annotated(workload.AnnotationWindow, "0 0 29 2 * for 1m"))
		dbChanges(s)
		s.set("configmap/app", "password", "two")
		s.rest()
		s.mark("configmap/app", asIgnored)
		s.settle()
		s.wantTold("web skipped source-ignored")
		s.edit("web", without(workload.AnnotationWindow))
		s.settle()
		s.wantRolls("web")
	})
}
