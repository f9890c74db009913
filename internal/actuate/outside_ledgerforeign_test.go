//go:build !race

package actuate_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/workload"
)

// A person puts back what was there before a roll, and with it the record of that time.
func TestLedgerAPersonUndoesARoll(t *testing.T) {
	testFixtures(t, []fixture{
		{
			name: "and neither this leader nor the next one rolls it again",
			play: func(s *scene) {
				s.beginWeb()
				undo := s.revisionOf("web")
				s.set("secret/db", "password", "two")
				s.rest()
				undo()
				s.pass(11 * time.Minute)
				s.restartFor(time.Hour)
			},
		},
		{
			name: "that is in progress, and nothing rolls it again",
			play: func(s *scene) {
				s.beginWeb()
				undo := s.revisionOf("web")
				s.stall("web")
				s.set("secret/db", "password", "two")
				s.pass(time.Minute)
				s.soFar()
				undo()
				s.pass(time.Hour)
			},
			want: ends{told: "web skipped undone"},
		},
	})
}

// A tool makes the workload anew, with its record and its managedFields.
func TestLedgerARecordFromABackupRollsNothing(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db#password"))
		s.begin("secret/db")
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
		s.wantEnds(ends{told: "web skipped keys-not-consumed"})
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

// What changed while a source was ignored is to be forgotten.
func TestLedgerAnIgnoredSourceIsForgottenByTheNextLeaderToo(t *testing.T) {
	play(t, func(s *scene) {
		holding(func(s *scene) {
			s.mark("secret/db", asIgnored)
			s.pass(time.Minute)
			s.restartFor(time.Minute)
		})(s)
		s.wantEnds(ends{})
	})
}

// An operator removes what it does not know.
func TestLedgerAnOperatorThatRevertsACompleteRollIsLeftAlone(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.set("secret/db", "password", "two")
		s.rest()
		s.writeAs("operator", "web", withoutOurMarks)
		s.pass(11 * time.Minute)
		s.restartFor(11 * time.Minute)
		s.wantEnds(ends{})
	})
}
