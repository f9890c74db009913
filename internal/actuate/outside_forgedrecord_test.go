//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// neverReached is a resourceVersion that no cluster reaches.
const neverReached = "9999999999999999999"

// forgeRecord has somebody with the token of the actuator write into the record of a workload that it was rolled for a version of a source.
func (s *scene) forgeRecord(name, source, version string) {
	s.Helper()
	record := s.recordOf(name)
	fingerprint, rest, _ := strings.Cut(record[source], "@")
	_, object, isThere := strings.Cut(rest, "/")
	if !isThere {
		s.Fatalf("the record of %s has no entry of %s: %v", name, source, record)
	}
	record[source] = fingerprint + "@" + version + "/" + object
	s.writeAs(workload.FieldManager, name, annotated(annotationRecord, jsonOf(record)))
}

// forgedBefore has the source change, and the record of web forged after the roll.
func forgedBefore(s *scene) {
	dbChangesBefore(s)
	s.forgeRecord("web", "secret/db", neverReached)
	s.pass(time.Minute)
}

// Whoever had the token of the actuator for a while must not have silenced rotations for good.
func TestAForgedRecordSilencesNoRotation(t *testing.T) {
	forged := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.beginWeb()
			forgedBefore(s)
			s.soFar()
			happens(s)
			s.pass(11 * time.Minute)
		}
	}
	impossible := ends{rolls: "web", told: "web started record-impossible; web completed rolled-out"}
	corrected := ends{told: "web skipped record-impossible"}
	testFixtures(t, []fixture{
		{name: "that comes later", play: forged(dbChanges), want: impossible},
		{name: "that comes while no actuator runs", want: impossible, play: forged(func(s *scene) {
			s.running[0].stop()
			dbChanges(s)
			s.restart()
		})},
		{name: "nor the one after that, which rolls as ever", want: rolled("web"), play: forged(func(s *scene) {
			dbChanges(s)
			s.rest()
			s.set("secret/db", "password", "three")
		})},
		{name: "and is corrected with the next event of the source", play: forged(func(s *scene) { s.mark("secret/db") }), want: corrected},
		{name: "and is corrected by the next leader", play: forged(func(s *scene) { s.restart() }), want: corrected},
		{name: "and is corrected when an actuator looks at what the record lacks", want: corrected, play: func(s *scene) {
			s.workload("web", auto, reads("secret/db"))
			s.observe("secret/db")
			s.startFor(time.Second) // It looks again at what it has written only later.
			s.forgeRecord("web", "secret/db", neverReached)
			s.soFar()
			s.pass(11 * time.Minute)
		}},
		{name: "for which the workload waits, until the cluster has reached the version", want: rolled("web"), play: func(s *scene) {
			s.workload("web", auto, onHold, reads("secret/db"))
			s.atRest("secret/db")
			now, err := strconv.Atoi(s.nextVersion())
			testkit.Must(s, err)
			s.forgeRecord("web", "secret/db", strconv.Itoa(now+100))
			dbChanges(s)
			s.pass(time.Minute)
			for range 200 {
				s.nextVersion()
			}
			s.soFar()
			s.edit("web", letGo)
			s.pass(11 * time.Minute)
		}},
	})
}

// Where a Job is started and nothing may be recorded, an outcome is what says so. Whoever has the NATS user of the actuator can publish one.
func TestAForgedOutcomeSilencesNoRotation(t *testing.T) {
	play(t, func(s *scene) {
		startsJobs(s)
		first := s.start()
		s.pass(time.Minute)
		startOne(s)
		first.stop()
		forged := s.lastOf("cronjob/report")
		forged.Revision, forged.Time, forged.Sources = "forged", time.Now().UTC(), slices.Clone(forged.Sources)
		for i := range forged.Sources {
			forged.Sources[i].ResourceVersion = neverReached
		}
		natstest.Publish(s.T, func() error { return errors.Join(s.bus.PublishOutcomes(s.Context(), forged)...) })
		s.restartFor(time.Minute)
		s.settled("secret/db", "password", "three")
		s.pass(time.Minute)
		if got := len(s.jobs()); got != 2 {
			s.Errorf("there are %d Jobs after the next change, want one more", got)
		}
	})
}
