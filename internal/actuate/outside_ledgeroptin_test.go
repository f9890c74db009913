//go:build !race

package actuate_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// whileNobodyLeads is a play: each of these happens ten minutes after the other, between the end of the only leader and the start of the next one.
func whileNobodyLeads(happenings ...func(*scene)) func(*scene) {
	return func(s *scene) {
		s.options.LeaderElect = true
		s.workload("web", reads("secret/db"))
		leader := s.atRest("secret/db")
		leader.stop()
		for _, happens := range happenings {
			s.pass(10 * time.Minute)
			happens(s)
		}
		s.pass(10 * time.Minute)
		s.startFor(11 * time.Minute)
	}
}

func webOptsIn(s *scene) { s.edit("web", auto) }

func dbChanges(s *scene) { s.set("secret/db", "password", "two") }

func TestLedgerAnOptInWhileNobodyLeads(t *testing.T) {
	testFixtures(t, []fixture{
		{name: "a workload is rolled for a change after its opt-in", play: whileNobodyLeads(webOptsIn, dbChanges), want: rolled("web")},
		{name: "a workload is not rolled for a change before its opt-in", play: whileNobodyLeads(dbChanges, webOptsIn)},
		{
			name: "a workload is not rolled that somebody has written since, because that may have been the opt-in",
			play: whileNobodyLeads(webOptsIn, dbChanges, func(s *scene) { s.edit("web", annotated("example.org/owner", "office")) }),
		},
		{
			name: "a workload is rolled for a change in a store after its opt-in",
			play: whileNobodyLeads(
				func(s *scene) { s.edit("web", on("openbao:secret/shop/db")) },
				func(s *scene) { s.rotateInStore("demo", "secret/shop/db", 1) },
			),
			want: rolled("web"),
		},
		{
			name: "a workload that --roll-all adds is rolled once for what changed meanwhile, because nobody knows since when it was to be rolled",
			play: whileNobodyLeads(dbChanges, func(s *scene) { s.options.RollAll = true }), want: rolled("web"),
		},
		{
			name: "a dry run leads nobody",
			play: func(s *scene) {
				s.options.LeaderElect = true
				s.workload("web", reads("secret/db"))
				leader := s.atRest("secret/db")
				leader.stop()
				s.options.DryRun = true
				dry := s.start()
				s.pass(10 * time.Minute)
				webOptsIn(s)
				s.pass(10 * time.Minute)
				dbChanges(s)
				s.pass(10 * time.Minute)
				dry.stop()
				s.options.DryRun = false
				s.startFor(11 * time.Minute)
			},
			want: ends{rolls: "web", told: "web skipped dry-run; web started content-changed; web completed rolled-out"},
		},
	})
}

// What a workload has a record of, it wanted already.
func TestLedgerADeletionWhileNobodyLeadsRollsWhoHasARecord(t *testing.T) {
	play(t, func(s *scene) {
		s.options.LeaderElect, s.options.RollOnDelete = true, true
		s.workload("web", auto, reads("configmap/app?"))
		leader := s.begin("configmap/app")
		s.rest()
		leader.stop()
		s.pass(10 * time.Minute)
		s.erase("configmap/app")
		s.edit("web", annotated("example.org/owner", "office"))
		s.pass(10 * time.Minute)
		s.startFor(11 * time.Minute)
		s.wantRolls("web")
		s.wantTold("web started deleted", "web completed rolled-out")
	})
}

// Nobody has led before.
func TestLedgerTheFirstActuatorFindsAFilledStream(t *testing.T) {
	testFixtures(t, []fixture{
		{
			name: "what changed before it was installed rolls nothing that is older",
			play: func(s *scene) {
				s.workload("web", auto, reads("secret/db"))
				s.observe("secret/db")
				s.pass(time.Minute)
				dbChanges(s)
				s.pass(time.Hour)
				s.startFor(11 * time.Minute)
			},
		},
	})
}

// A record may be older than the last opt-in.
func TestLedgerAnOptInAgain(t *testing.T) {
	again := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.workload("web", auto, reads("secret/db#password"))
			s.atRest("secret/db")
			s.edit("web", on("none"))
			s.pass(time.Minute)
			dbChanges(s)
			s.pass(time.Minute)
			s.edit("web", auto)
			s.rest()
			happens(s)
			s.pass(11 * time.Minute)
		}
	}
	testFixtures(t, []fixture{
		{name: "a change of before rolls nothing", play: again(func(*scene) {})},
		{
			name: "a change just before the opt-in rolls nothing, with the next leader neither",
			play: func(s *scene) {
				s.workload("web", reads("secret/db"))
				s.atRest("secret/db")
				dbChanges(s)
				s.pass(time.Millisecond)
				webOptsIn(s)
				s.pass(11 * time.Minute)
				s.restartFor(11 * time.Minute)
			},
		},
		{
			// One roll too many, in doubt.
			name: "a change of before rolls with a leader that begins before that is recorded",
			play: func(s *scene) {
				s.workload("web", auto, reads("secret/db"))
				s.atRest("secret/db")
				s.edit("web", on("none"))
				s.pass(time.Minute)
				dbChanges(s)
				s.pass(time.Minute)
				s.refuse("web", unavailable())
				s.edit("web", auto)
				s.pass(time.Minute)
				s.running[0].stop()
				s.refuse("web", nil)
				s.restartFor(11 * time.Minute)
			},
			want: rolled("web"),
		},
		{
			name: "a pattern that is added names nothing that changed before",
			play: func(s *scene) {
				s.workload("web", auto, reads("secret/db"))
				s.begin("secret/db", "configmap/release-1")
				s.set("configmap/release-1", "password", "two")
				s.rest()
				s.edit("web", on("secret/db, configmap/release-*"))
				s.pass(11 * time.Minute)
				s.restartFor(11 * time.Minute)
			},
		},
	})
}

// switching is a play: secret/db of the namespaces changes at rest, with the options and workloads of before. Then an actuator with those of after
// takes over.
func switching(before, after func(*scene)) func(*scene) {
	return func(s *scene) {
		before(s)
		s.begin("secret/db", "office/secret/db")
		s.set("secret/db", "password", "two")
		s.set("office/secret/db", "password", "two")
		s.rest()
		after(s)
		s.restartFor(11 * time.Minute)
	}
}

// What a workload begins to want by an option has changed before it did.
func TestLedgerAnOptionThatAddsWorkloadsRollsNone(t *testing.T) {
	testFixtures(t, []fixture{
		{
			name: "a workload that --roll-all adds is not rolled for what changed before",
			play: switching(func(s *scene) { s.workload("web", reads("secret/db")) }, func(s *scene) { s.options.RollAll = true }),
		},
		{
			name: "a workload of a namespace that is added is not rolled for what changed before",
			play: switching(func(s *scene) {
				s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "office"}})
				s.options.Namespaces = []string{namespace}
				s.workload("office/web", auto, reads("secret/db"))
			}, func(s *scene) { s.options.Namespaces = []string{namespace, "office"} }),
		},
		{
			name: "a Job, once Jobs are recreated, is not recreated for what changed before",
			play: switching(func(s *scene) { s.job("import", auto, reads("secret/db")) }, func(s *scene) { s.options.RecreateJobs = true }),
		},
		{
			name: "a workload that a grant lets read a store is not rolled for what changed there before",
			play: func(s *scene) {
				granted := s.options.StoreAccess
				s.options.StoreAccess = ""
				s.workload("web", on("openbao:secret/shop/db"))
				s.start()
				s.rotateInStore("demo", "secret/shop/db", 1)
				s.pass(time.Minute)
				s.rotateInStore("demo", "secret/shop/db", 2)
				s.rest()
				s.options.StoreAccess = granted
				s.restartFor(11 * time.Minute)
			},
		},
	})
}

// The decisions of a leader at rest are on the workloads.
func TestLedgerANewLeaderAtRestWritesAndTellsNothing(t *testing.T) {
	everyKind := func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.workload("silent", reads("secret/db"))
		s.workload("statefulset/db", auto, reads("secret/db#password"))
		s.workload("daemonset/agent", auto, reads("secret/db", "configmap/app?"))
		s.workload("cronjob/report", auto, reads("secret/db"))
		s.workload("named", on("secret/d*, openbao:secret/shop/db"))
		s.atRest("secret/db")
	}
	testFixtures(t, []fixture{
		{
			name: "after rolls for Secrets, for what appeared, and for a store",
			play: func(s *scene) {
				everyKind(s)
				s.set("secret/db", "password", "two")
				s.appear("configmap/app")
				s.rotateInStore("demo", "secret/shop/db", 1)
				s.rest()
				s.restartFor(time.Hour)
				s.wantNotices()
			},
			want: ends{quiet: true},
		},
		{
			name: "after rolls of a Rollout, of a Job that is recreated, and of a CronJob that starts one",
			play: func(s *scene) {
				serveHealthy(s)
				s.options.RecreateJobs, s.options.StartCronJobs = true, true
				s.job("import", auto, reads("secret/db"))
				s.workload("cronjob/report", auto, reads("secret/db"))
				s.change("cronjob/report", func(object runtime.Object) {
					if report, ok := object.(*batchv1.CronJob); ok {
						report.Spec.Suspend = new(false) // The API server sets it.
					}
				})
				s.begin("secret/db")
				s.set("secret/db", "password", "two")
				s.rest()
				s.restartFor(11 * time.Minute)
				s.wantNotices()
			},
			want: ends{quiet: true},
		},
	})
}
