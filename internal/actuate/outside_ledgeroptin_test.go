//go:build !race

package actuate_test

import (
	"testing"
	"time"
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
func TestLedgerTheFirstActuatorRollsNothingThatIsOlder(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.observe("secret/db")
		s.pass(time.Minute)
		dbChanges(s)
		s.pass(time.Hour)
		s.startFor(11 * time.Minute)
		s.wantEnds(ends{})
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

// What a workload begins to want by an option has changed before it did.
func TestLedgerAnOptionThatAddsWorkloadsRollsNone(t *testing.T) {
	play(t, func(s *scene) {
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
		s.options.StoreAccess, s.options.RecreateJobs = granted, true
		s.restartFor(11 * time.Minute)
		s.wantEnds(ends{})
	})
}

// The decisions of a leader at rest are on the workloads. This is after rolls of a Rollout, of a Job that is recreated, and of a CronJob that starts one.
func TestLedgerANewLeaderAtRestWritesAndTellsNothing(t *testing.T) {
	play(t, func(s *scene) {
		serveHealthy(s)
		s.options.RecreateJobs, s.options.StartCronJobs = true, true
		s.job("import", auto, reads("secret/db"))
		s.cronJob("report", false)
		s.begin("secret/db")
		s.set("secret/db", "password", "two")
		s.rest()
		s.restartFor(11 * time.Minute)
		s.wantNotices()
		s.wantEnds(ends{quiet: true})
	})
}
