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
	whole, password := reads("secret/db"), reads("secret/db#password")
	testFixtures(t, []fixture{
		{name: "and neither this leader nor the next one rolls it again", play: undoing("web", whole, nextLeader)},
		{name: "of a StatefulSet, whose annotations stay, and nobody rolls it again", play: undoing("statefulset/db", whole, nextLeader)},
		{
			name: "and the next change rolls it", play: undoing("web", whole, func(s *scene) { s.set("secret/db", "password", "three") }),
			want: rolled("web"),
		},
		{
			name: "and a change back rolls it, because its pods were started with the other content",
			play: undoing("web", whole, func(s *scene) { s.set("secret/db", "password", "one") }), want: rolled("web"),
		},
		{
			name: "and a change back rolls it with the next leader, too",
			play: undoing("web", whole, func(s *scene) {
				s.restartFor(time.Minute)
				s.set("secret/db", "password", "one")
			}),
			want: rolled("web"),
		},
		{
			name: "and a change of what it does not read does not roll it",
			play: undoing("web", password, func(s *scene) { s.set("secret/db", "user", "two") }), want: ends{told: "web skipped keys-not-consumed"},
		},
		{
			name: "and the next leader does not roll it again when another workload still waits for the same change",
			play: func(s *scene) {
				s.workload("api", auto, onHold, reads("secret/db"))
				undoing("web", whole, func(s *scene) { s.restart() })(s)
			},
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
		{name: "with a manifest that is applied, and a change of what it does not read rolls nothing", play: bringing(apply, notRead), want: skipped},
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
		{name: "with a manifest that is replaced, and a change back rolls it", play: bringing(replace, back), want: rolled("web")},
		{
			name: "with a manifest that is replaced, and a change back rolls it with the next leader", play: bringing(replace, next(back)),
			want: rolled("web"),
		},
		{name: "from a backup, and a change of what it does not read rolls nothing", play: bringing(restore, notRead), want: skipped},
		{name: "from a backup, and a change back rolls it with the next leader", play: bringing(restore, next(back)), want: rolled("web")},
		{
			name: "with the manifest of another workload, and the next leader knows what its pods have",
			play: func(s *scene) {
				bringing(func(s *scene, _ string) {
					s.workload("api", auto, reads("secret/db#password"), annotated(annotationRecord, s.annotation("web", annotationRecord)))
				}, func(s *scene) { s.restart() })(s)
			},
			want: ends{quiet: true},
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
	again := ends{rolls: "web", told: "web failed reverted; web started content-changed"}
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
			name: "that is in progress under the next leader, and it is rolled again",
			play: reverting(func(s *scene) { stall(s); s.restart(); s.pass(time.Minute); revert(s) }),
			want: again,
		},
		{
			name: "that is in progress while nobody leads, and it is rolled again",
			play: reverting(func(s *scene) {
				stall(s)
				s.running[0].stop()
				revert(s)
				s.pass(time.Minute)
				s.restart()
			}),
			want: again,
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

// A tool writes what it has, or what it had.
func TestLedgerAToolWritesAWorkload(t *testing.T) {
	recorded := func(happens func(s *scene, record string)) func(*scene) {
		return func(s *scene) {
			s.workload("web", auto, reads("secret/db#password"))
			s.begin("secret/db")
			record := s.annotation("web", annotationRecord)
			s.set("secret/db", "password", "two")
			s.rest()
			happens(s, record)
			s.pass(11 * time.Minute)
		}
	}
	testFixtures(t, []fixture{
		{
			name: "without what is not in its manifest while it rolls, and it is rolled again",
			play: func(s *scene) {
				s.rolling()
				s.soFar()
				s.writeAs("kubectl-replace", "web", withoutOurs)
				s.pass(10 * time.Second)
				s.finish("web")
				s.pass(11 * time.Minute)
			},
			want: ends{rolls: "web", told: "web failed reverted; web started content-changed; web completed rolled-out"},
		},
		{
			name: "anew from a backup with its record of that time, and it is not rolled",
			play: recorded(func(s *scene, record string) {
				s.delete("web")
				s.pass(time.Minute)
				s.workload("web", auto, annotated(annotationRecord, record), reads("secret/db#password"))
				s.pass(11 * time.Minute)
				s.restart()
			}),
		},
	})
}
