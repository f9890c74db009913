//go:build !race

package actuate_test

import (
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAPatchWhoseAnswerWasLostIsFollowed(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.stall("web")
		s.loseAnswers()
		s.rotate("two", "web")
		s.wantTold("web started already-rolled")
		s.pass(2 * time.Second)
		s.wantTold()
		s.finish("web")
		s.pass(time.Hour)
		s.wantTold("web completed rolled-out")
		s.wantRolls()
	})
}

// killAfterPatch lets a leader roll web for a new password, and kills it before it can tell anybody. Until the next leader comes, another key of the
// Secret changes.
func killAfterPatch(s *scene, leader *running, password string) {
	s.Helper()
	s.set("secret/db", "password", password)
	s.pass(500 * time.Millisecond)
	s.nats.Stop()
	s.settle()
	s.wantRolls("web")
	leader.kill()
	s.nats.Start()
	s.pass(5 * time.Second)
	s.set("secret/db", "user", password)
}

func TestARolloutThatNobodyHasReportedIsFound(t *testing.T) {
	found := []string{"web started already-rolled", "web completed rolled-out"}
	var left []string
	for _, tt := range []struct {
		name string
		// earlier says that an earlier rollout of the workload was reported, and old that the stream has an event from long before.
		earlier, old bool
		// stalled says that the pods have not started when the next leader comes.
		stalled bool
		// private says that the last leader had a stream of its own.
		private bool
		// later is how long after the patch the next leader comes.
		later time.Duration
		want  []string
	}{
		{name: "after one that was reported", earlier: true, want: found},
		{name: "if the stream is older, and so has no outcome of it", old: true, want: found},
		{name: "while it is in progress", stalled: true, want: []string{"web started already-rolled"}},
		{name: "unless the outcome may have expired", old: true, later: events.FullOutcomeTTL, want: left},
		{name: "also not while pods start, a day later", stalled: true, later: events.CrowdedOutcomeTTL + time.Hour, want: left},
		{name: "unless the stream may have been lost, and the outcome with it", want: left},
		{name: "unless the last leader has reported it on a stream of its own", earlier: true, private: true, want: left},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.options.LeaderElect, s.options.PrivateStream = tt.private, tt.private
			s.workload("web", auto, reads("secret/db#password"))
			s.observe("secret/db")
			if tt.old {
				s.observe("secret/old")
			}
			leader := s.start()
			s.pass(time.Minute)
			if tt.earlier {
				s.rotate("two", "web")
				s.wantTold("web started content-changed", "web completed rolled-out")
				s.pass(time.Minute)
			}
			if tt.stalled {
				s.stall("web")
			}
			killAfterPatch(s, leader, "three")
			s.pass(tt.later)
			s.startFor(30 * time.Second)
			s.wantTold(tt.want...)
			s.wantRolls()
			if tt.stalled && len(tt.want) > 0 {
				s.finish("web")
				s.pass(time.Second)
				s.wantTold("web completed rolled-out")
			}
		})
	}
}

func TestAFoundRolloutIsToldForTheChangesOfItsMark(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db#password", "configmap/app"))
		leader := s.begin("secret/db", "configmap/app")
		s.settled("configmap/app", "password", "two")
		s.wantRolls("web")
		s.pass(time.Minute)
		s.stall("web")
		killAfterPatch(s, leader, "two")
		s.startFor(30 * time.Second)
		for _, outcome := range s.outcomesOf("web") {
			if outcome.Verb == events.VerbStarted && outcome.Reason == "already-rolled" {
				if len(outcome.Sources) != 1 || outcome.Sources[0].Source != "secret/db" {
					s.Errorf("it is told for %+v, want secret/db alone", outcome.Sources)
				}
				return
			}
		}
		s.Error("it is not told")
	})
}

// The backup has managedFields, too, as a tool restores them. They are from before the workload was created.
func TestARestoredWorkloadIsNoRolloutOfAnEarlierLeader(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db#password"))
		leader := s.begin("secret/db", "secret/old")
		killAfterPatch(s, leader, "two")
		backup, ok := s.object("web").(*appsv1.Deployment)
		if !ok {
			s.Fatal("it is no Deployment")
		}
		s.delete("web")
		s.pass(time.Minute)
		s.stall("web")
		backup.UID, backup.CreationTimestamp = "", metav1.Time{}
		s.create(backup)
		s.startFor(time.Minute)
		s.wantTold()
		s.wantRolls()
	})
}

func TestAnEarlierRollThatSomebodyBringsBackIsNoRolloutOfAnEarlierLeader(t *testing.T) {
	for _, tt := range []struct {
		name string
		// record says that the record of that roll comes back, too, and stalled that the pods have not come back when the next leader comes.
		record, stalled bool
	}{
		{name: "without its record"},
		{name: "with its record", record: true},
		{name: "with its record, and while its pods start", record: true, stalled: true},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.workload("web", auto, reads("secret/db#password"))
			leader := s.begin("secret/db")
			s.rotate("two", "web")
			was, template := partsOf(s.object("web"))
			s.pass(time.Hour)
			s.rotate("three", "web")
			s.pass(time.Second)
			s.told()
			leader.stop()
			if tt.stalled {
				s.stall("web")
			}
			s.edit("web", func(object *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
				pod.Annotations = maps.Clone(template.Annotations)
				if tt.record {
					object.Annotations = maps.Clone(was.Annotations)
				}
			})
			s.startFor(time.Hour)
			s.wantTold()
			s.wantRolls()
		})
	}
}

func TestARolloutIsNotToldAgainAfterTheRefusalOfTheNextChange(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db#password"))
		s.begin("secret/db")
		s.rotate("two", "web")
		s.pass(time.Minute)
		s.refuse("web", deniedByAdmission())
		s.set("secret/db", "password", "three")
		s.pass(time.Minute)
		s.wantTold("web started content-changed", "web completed rolled-out", "web failed patch-denied")
		s.restartFor(time.Minute)
		s.wantTold()
		s.wantRolls()
	})
}

func TestANewLeaderTellsTheEndOfRolloutsWhoseWorkloadsAreGone(t *testing.T) {
	play(t, func(s *scene) {
		s.readers("secret/db", "begun", "done")
		leader := s.begin("secret/db")
		s.stall("begun")
		s.rotate("two", "begun", "done")
		s.wantTold("begun started content-changed", "done started content-changed", "done completed rolled-out")
		leader.stop()
		s.delete("begun")
		s.delete("done")
		s.startFor(time.Minute)
		s.wantTold("begun skipped workload-gone")
	})
}

// The workload has the revision of a roll in another life, of which nothing was told.
func TestAChangeThatWasOnlyRecordedIsNoRolloutOfAnEarlierLeader(t *testing.T) {
	playOf(t, "when the answer to the patch was lost", func(s *scene) {
		s.workload("web", auto, reads("secret/db"), podAnnotated(annotationRevision, "0123456789abcdef"))
		s.begin("secret/db")
		s.loseAnswers()
		s.set("secret/db", "password", "two")
		s.edit("web", image("example.com/app:2"))
		s.pass(10 * time.Second)
		s.wantTold()
		s.wantRolls()
	})
	playOf(t, "when the next leader finds it", func(s *scene) {
		s.workload("web", auto, reads("secret/db"), podAnnotated(annotationRevision, "0123456789abcdef"))
		leader := s.begin("secret/db")
		s.writesSince(&s.seen)
		s.set("secret/db", "password", "two")
		s.edit("web", image("example.com/app:2"))
		s.pass(500 * time.Millisecond)
		s.nats.Stop()
		s.settle()
		if writes := s.writesSince(&s.seen); len(writes) != 1 || writes[0].rolls {
			s.Errorf("written are %+v, want a record", writes)
		}
		leader.kill()
		s.nats.Start()
		s.pass(5 * time.Second)
		s.startFor(time.Minute)
		s.wantNothing()
	})
}
