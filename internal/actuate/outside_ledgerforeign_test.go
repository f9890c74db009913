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
	// undoing rolls a workload to its end, undoes that, and lets something happen.
	undoing := func(name string, reading aspect, happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.workload(name, auto, reading)
			s.begin("secret/db")
			undo := s.revisionOf(name)
			s.set("secret/db", "password", "two")
			s.rest()
			undo()
			s.pass(time.Minute)
			happens(s)
			s.pass(11 * time.Minute)
		}
	}
	nextLeader := func(s *scene) {
		s.pass(11 * time.Minute)
		s.restartFor(time.Hour)
	}
	whole := reads("secret/db")
	testFixtures(t, []fixture{
		{name: "and neither this leader nor the next one rolls it again", play: undoing("web", whole, nextLeader)},
		{name: "of a StatefulSet, whose annotations stay, and nobody rolls it again", play: undoing("statefulset/db", whole, nextLeader)},
		{
			name: "and a change back rolls it with the next leader, too",
			play: undoing("web", whole, func(s *scene) {
				s.restartFor(time.Minute)
				s.set("secret/db", "password", "one")
			}),
			want: rolled("web"),
		},
		{
			name: "that is in progress, and nothing rolls it again",
			play: func(s *scene) {
				s.workload("web", auto, reads("secret/db"))
				s.atRest("secret/db")
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
		{
			name: "that has failed, and one of the others tries it next",
			play: func(s *scene) {
				s.workload("web", auto, reads("secret/db"))
				s.workload("api", auto, annotated("keyturn.dev/wave", "1"), reads("secret/db"))
				s.atRest("secret/db")
				undo := s.revisionOf("web")
				s.stall("web")
				s.set("secret/db", "password", "two")
				s.pass(time.Minute)
				s.fail("web")
				s.rest()
				undo()
				s.pass(11 * time.Minute)
			},
			want: rolled("api"),
		},
	})
}

// A record may be in a manifest, or in a backup.
func TestLedgerOthersBringBackARecord(t *testing.T) {
	// bringing rolls web, and then brings back the record of before.
	bringing := func(back func(s *scene, record string), happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.workload("web", auto, reads("secret/db#password"))
			s.begin("secret/db")
			record := s.annotation("web", annotationRecord)
			s.set("secret/db", "password", "two")
			s.rest()
			back(s, record)
			s.pass(2 * time.Minute)
			s.soFar()
			happens(s)
			s.pass(11 * time.Minute)
		}
	}
	apply := func(s *scene, record string) {
		s.applyAs("argocd-controller", "web", annotated(annotationRecord, record))
	}
	replace := func(s *scene, record string) {
		s.writeAs("kubectl-replace", "web", annotated(annotationRecord, record))
	}
	// restore makes the workload anew, as a tool does that restores managedFields, too.
	restore := func(s *scene, record string) {
		backup := s.object("web")
		object := metaOf(backup)
		object.SetAnnotations(map[string]string{workload.AnnotationRollOn: "auto", annotationRecord: record})
		object.SetUID("")
		object.SetCreationTimestamp(metav1.Time{})
		s.delete("web")
		s.pass(time.Minute)
		s.create(backup)
	}
	notRead := func(s *scene) { s.set("secret/db", "user", "two") }
	back := func(s *scene) { s.set("secret/db", "password", "one") }
	next := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.restartFor(time.Minute)
			happens(s)
		}
	}
	skipped := ends{told: "web skipped keys-not-consumed"}
	testFixtures(t, []fixture{
		{
			name: "with a manifest that is applied again and again, and nothing rolls",
			play: func(s *scene) {
				bringing(func(s *scene, record string) {
					for range 20 {
						apply(s, record)
						s.pass(3 * time.Minute)
					}
				}, func(s *scene) { s.restart() })(s)
			},
		},
		{
			name: "with a manifest that is replaced, and a change back rolls it with the next leader", play: bringing(replace, next(back)),
			want: rolled("web"),
		},
		{name: "from a backup, and a change of what it does not read rolls nothing", play: bringing(restore, notRead), want: skipped},
	})
}

// What waits may be no difference between a content and a record.
func TestLedgerWhatIsNoChangeOfContentWaitsOnTheWorkload(t *testing.T) {
	testFixtures(t, []fixture{
		{
			name: "a deletion that a workload on hold waits for counts once the source is back, because pods that started meanwhile lack it",
			play: func(s *scene) {
				s.options.RollOnDelete = true
				s.workload("web", auto, onHold, reads("configmap/app?"))
				s.atRest("configmap/app")
				s.erase("configmap/app")
				s.pass(time.Minute)
				s.appear("configmap/app")
				s.rest()
				s.restartFor(time.Minute)
				s.soFar()
				s.edit("web", letGo)
				s.pass(11 * time.Minute)
			},
			want: ends{rolls: "web", told: "web started appeared; web completed rolled-out"},
		},
		{
			name: "an appearance that a workload on hold waits for outlives the leader",
			play: func(s *scene) {
				s.workload("web", auto, onHold, reads("configmap/app?"))
				s.startFor(time.Minute)
				s.appear("configmap/app")
				s.rest()
				s.restartFor(time.Minute)
				s.soFar()
				s.edit("web", letGo)
				s.pass(time.Minute)
			},
			want: ends{rolls: "web", told: "web started appeared; web completed rolled-out"},
		},
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

// Somebody removes the record of a workload that waits.
func TestLedgerAToolDropsTheRecordOfAWorkloadThatWaits(t *testing.T) {
	drop := func(s *scene) { s.writeAs("kubectl-replace", "web", withoutOurs) }
	testFixtures(t, []fixture{
		{name: "it still waits", play: holding(func(s *scene) { drop(s); s.pass(time.Hour) }), want: rolled("web")},
		{
			name: "it still waits with the next leader if the tool does so every few minutes",
			play: holding(func(s *scene) {
				for range 20 {
					drop(s)
					s.pass(3 * time.Minute)
				}
				s.restartFor(3 * time.Minute)
			}),
			want: rolled("web"),
		},
		{
			name: "a workload that does not wait is recorded again, and rolls for nothing",
			play: func(s *scene) {
				s.beginWeb()
				s.set("secret/db", "password", "two")
				s.rest()
				for range 5 {
					drop(s)
					s.pass(3 * time.Minute)
				}
				s.restartFor(11 * time.Minute)
			},
		},
	})
}

// What changed while a source was ignored is to be forgotten.
func TestLedgerAnIgnoredSourceChanges(t *testing.T) {
	testFixtures(t, []fixture{
		{
			name: "nothing rolls for that once a person puts it on hold and ends that",
			play: func(s *scene) {
				s.beginWeb()
				s.mark("secret/db", asIgnored)
				s.set("secret/db", "password", "two", asIgnored)
				s.rest()
				s.mark("secret/db", sourceHeld("moving"))
				s.pass(time.Minute)
				s.mark("secret/db")
				s.pass(11 * time.Minute)
			},
			want: ends{told: "web skipped keys-not-consumed; web skipped keys-not-consumed"},
		},
		{
			name: "what a workload waits for is forgotten with the next leader, too",
			play: holding(func(s *scene) { s.mark("secret/db", asIgnored); s.pass(time.Minute); s.restart(); s.pass(time.Minute) }),
		},
	})
}

// An operator removes what it does not know.
func TestLedgerAnOperatorRevertsARoll(t *testing.T) {
	reverting := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.workload("web", auto, reads("secret/db"))
			s.atRest("secret/db")
			happens(s)
			s.pass(4 * time.Minute)
		}
	}
	revert := func(s *scene) { s.writeAs("operator", "web", withoutOurMarks) }
	stall := func(s *scene) {
		s.stall("web")
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		s.soFar()
	}
	testFixtures(t, []fixture{
		{
			name: "that is complete, and nothing rolls it again",
			play: reverting(func(s *scene) {
				s.set("secret/db", "password", "two")
				s.rest()
				revert(s)
				s.pass(11 * time.Minute)
				s.restartFor(11 * time.Minute)
			}),
		},
		{
			name: "that is in progress, with the record and the count, and the next leader repeats nothing",
			play: func(s *scene) {
				s.options.LeaderElect = true
				reverting(func(s *scene) {
					stall(s)
					s.writeAs("operator", "web", wiped)
					s.pass(2 * time.Second)
					s.running[0].stop()
					s.writeAs("operator", "web", wiped)
					s.restartFor(11 * time.Minute)
				})(s)
			},
			want: ends{told: "web failed reverted"},
		},
	})
}
