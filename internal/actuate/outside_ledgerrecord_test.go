//go:build !race

package actuate_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// A person puts back what was there before a roll, and with it the record of that time.
func TestLedgerAPersonUndoesARoll(t *testing.T) {
	testFixtures(t, []fixture{
		{name: "and neither this leader nor the next one rolls it again", play: func(s *scene) {
			s.beginWeb()
			undo := s.revisionOf("web")
			s.set("secret/db", "password", "two")
			s.rest()
			undo()
			s.pass(11 * time.Minute)
			s.restartFor(time.Hour)
		}},
		{name: "that is in progress, and nothing rolls it again", play: func(s *scene) {
			s.beginWeb()
			undo := s.revisionOf("web")
			s.stall("web")
			s.set("secret/db", "password", "two")
			s.pass(time.Minute)
			s.soFar()
			undo()
			s.pass(time.Hour)
		}, want: ends{told: "web skipped undone"}},
	})
}

// holding is a play: a workload on hold waits for a change. Then something happens, and the hold ends.
func holding(happens func(*scene)) func(*scene) {
	return func(s *scene) {
		s.workload("web", auto, onHold, reads("secret/db"))
		s.atRest("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		happens(s)
		s.soFar()
		s.edit("web", letGo)
		s.pass(time.Minute)
	}
}

func TestLedgerWhatRollsNobody(t *testing.T) {
	testFixtures(t, []fixture{
		{name: "a workload that a tool makes anew, with its record", want: ends{told: "web skipped keys-not-consumed"}, play: func(s *scene) {
			s.beginReading("secret/db#password")
			record := s.annotation("web", annotationRecord)
			s.set("secret/db", "password", "two")
			s.rest()
			backup := s.object("web")
			object := metaOf(backup)
			object.SetAnnotations(map[string]string{workload.AnnotationRollOn: "auto", annotationRecord: record})
			object.SetUID("")
			object.SetCreationTimestamp(metav1.Time{})
			s.delete("web")
			s.pass(time.Minute)
			s.create(backup)
			s.pass(2 * time.Minute)
			s.soFar()
			s.set("secret/db", "user", "two")
			s.pass(11 * time.Minute)
		}},
		{name: "what changed before a source was ignored, with the next leader", play: holding(func(s *scene) {
			s.mark("secret/db", asIgnored)
			s.pass(time.Minute)
			s.restartFor(time.Minute)
		})},
		{name: "a complete roll whose marks an operator removes", play: func(s *scene) {
			s.beginWeb()
			s.set("secret/db", "password", "two")
			s.rest()
			s.writeAs("operator", "web", withoutOurMarks)
			s.pass(11 * time.Minute)
			s.restartFor(11 * time.Minute)
		}},
		{name: "fingerprints under another key, which are not compared, as versions are", play: func(s *scene) {
			s.beginWeb()
			s.set("secret/db", "password", "two")
			s.rest()
			s.loseEvents()
			s.find("secret/db", map[string]string{"password": "two", "user": "app"}, underAnotherKey)
			s.pass(time.Minute)
			s.restartFor(11 * time.Minute)
		}},
		{name: "another key that a workload comes to read", play: func(s *scene) {
			s.workload("web", auto, reads("secret/db#password"))
			s.atRest("secret/db")
			s.set("secret/db", "user", "two")
			s.rest()
			s.edit("web", reads("secret/db#user"))
			s.rest()
			s.restartFor(11 * time.Minute)
		}},
		{name: "what is older than the first actuator", play: func(s *scene) {
			s.workload("web", auto, reads("secret/db"))
			s.observe("secret/db")
			s.pass(time.Minute)
			dbChanges(s)
			s.pass(time.Hour)
			s.startFor(11 * time.Minute)
		}},
		{name: "what a workload begins to want by an option", play: func(s *scene) {
			granted := s.options.StoreAccess
			s.options.StoreAccess = ""
			s.workload("web", on("openbao:secret/shop/db"))
			s.job("import", auto, reads("secret/db"))
			s.begin("secret/db")
			s.rotateInStore("demo", "secret/shop/db", 1)
			s.pass(time.Minute)
			s.rotateInStore("demo", "secret/shop/db", 2)
			dbChanges(s)
			s.rest()
			s.options.StoreAccess, s.options.Jobs = granted, []string{actuate.JobsRecreate}
			s.restartFor(11 * time.Minute)
		}},
		{name: "what a Rollout, a Job and a CronJob have, with a new leader, which writes nothing", want: ends{quiet: true}, play: func(s *scene) {
			serveHealthy(s)
			s.options.Jobs = []string{actuate.JobsStart, actuate.JobsRecreate}
			s.job("import", auto, reads("secret/db"))
			s.cronJob("report", false)
			s.begin("secret/db")
			s.set("secret/db", "password", "two")
			s.rest()
			s.restartFor(11 * time.Minute)
			s.wantNotices()
		}},
	})
}

// A record has room for some of the sources that a pattern names.
func TestLedgerAPatternNamesMoreThanARecordHolds(t *testing.T) {
	const many = 250
	play(t, func(s *scene) {
		name := func(i int) string { return fmt.Sprintf("configmap/release-%03d", i) }
		s.options.LeaderElect = true
		s.workload("web", on("configmap/release-*"))
		s.start()
		for i := range many {
			s.find(name(i), map[string]string{"version": "one"})
		}
		s.pass(time.Minute)
		for i := range many {
			s.set(name(i), "version", "two")
		}
		s.rest()
		s.restartFor(11 * time.Minute)
		s.wantEnds(ends{quiet: true})
		s.running[0].stop()
		s.set(name(0), "version", "three") // It changed first, so it is not in the record.
		s.restartFor(11 * time.Minute)
		s.wantEnds(rolled("web"))
	})
}

// What the stream has lost is not known, and not gone.
func TestLedgerTheStreamIsEmptied(t *testing.T) {
	// emptied is a play: the stream loses everything after a workload was rolled for the second content of secret/db. Then something happens.
	emptied := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.options.RollOnDelete = true
			s.beginReading("secret/db", "configmap/app?")
			s.set("secret/db", "password", "two")
			s.rest()
			s.loseEvents()
			s.pass(time.Minute)
			happens(s)
			s.pass(11 * time.Minute)
		}
	}
	testFixtures(t, []fixture{
		{
			name: "and what the watcher publishes again rolls nothing", play: emptied(func(s *scene) { s.again("secret/db", "configmap/app") }),
			want: ends{quiet: true},
		},
		{name: "and a new leader does not take what is missing for deleted", play: emptied(func(s *scene) { s.restart() }), want: ends{quiet: true}},
		{
			name: "and a watcher that finds another content rolls for it, because the record has the one before",
			play: emptied(func(s *scene) { s.find("secret/db", map[string]string{"password": "three", "user": "app"}) }),
			want: rolled("web"),
		},
	})
}

// The record does not have what the source had when it went, and has again.
func TestLedgerASourceOnHoldIsBackAfterPodsStartedWithoutIt(t *testing.T) {
	for create, why := range map[plan.Creation]plan.Reason{plan.CreateAuto: plan.Appeared, plan.CreateNever: plan.Changed} {
		playOf(t, string(create), func(s *scene) {
			s.options.RollOnCreate = create
			s.beginReading("secret/db", "configmap/app?")
			s.set("configmap/app", "password", "two", sourceHeld("moving"))
			s.pass(time.Minute)
			s.erase("configmap/app")
			s.pass(time.Minute)
			dbChanges(s)
			s.rest()
			s.publish("configmap/app", map[string]string{"password": "two", "user": "app"})
			s.pass(time.Minute)
			s.wantEnds(ends{rolls: "web", told: fmt.Sprintf("web started %s; web completed rolled-out", why)})
			s.restartFor(11 * time.Minute)
			s.wantEnds(ends{quiet: true})
		})
	}
}
