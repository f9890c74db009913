//go:build !race

package actuate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keyturn/keyturn/internal/events"
)

// The tests whose names begin with TestLedger say what happens where a record, an event or a leader is lost, is from somebody else, or comes late.

// fixture is something that happens, and what comes of it.
type fixture struct {
	name string
	play func(s *scene)
	want ends
}

// ends is what a play has led to since it has last called soFar or rest.
type ends struct {
	// rolls are the workloads that were rolled, separated by spaces, and told are the outcomes, separated by semicolons.
	rolls, told string
	// quiet says that nothing was patched at all, not even a record.
	quiet bool
}

// rolled is the end of a play in which these workloads are rolled for content that has changed, one after the other if one is named again.
func rolled(workloads ...string) ends {
	var told []string
	for _, name := range workloads {
		told = append(told, name+" started content-changed", name+" completed rolled-out")
	}
	return ends{rolls: strings.Join(workloads, " "), told: strings.Join(told, "; ")}
}

// testFixtures plays each fixture.
func testFixtures(t *testing.T, fixtures []fixture) {
	t.Helper()
	for _, f := range fixtures {
		playOf(t, f.name, func(s *scene) {
			f.play(s)
			s.wantEnds(f.want)
		})
	}
}

// wantEnds wants this to have happened since the last call of soFar or rest.
func (s *scene) wantEnds(want ends) {
	s.Helper()
	seen := s.seen
	for _, w := range s.writesSince(&seen) {
		if want.quiet && !w.rolls {
			s.Errorf("a record of %s is written: %s", w.workload, w.body)
		}
	}
	s.wantRolls(listed(want.rolls, " ")...)
	s.wantTold(listed(want.told, "; ")...)
}

// listed returns what a text lists.
func listed(text, separator string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, separator)
}

// A patch tests that nobody has rolled the workload meanwhile.
func TestLedgerTwoActuatorsThatBothLeadRollAWorkloadOnce(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.observe("secret/db")
		s.start()
		s.atRest()
		s.set("secret/db", "password", "two")
		s.pass(11 * time.Minute)
		s.wantEnds(rolled("web"))
	})
}

func TestLedgerTheTraceOfAChangeOutlivesTheLeaderThatHeldIt(t *testing.T) {
	play(t, func(s *scene) {
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		holding(func(s *scene) {
			s.set("secret/db", "password", "three", func(change *events.Change) { change.Trace.Parent = parent })
			s.pass(time.Minute)
			s.restartFor(time.Minute)
		})(s)
		s.wantRolls("web")
		if got := s.podAnnotation("web", events.AnnotationTraceparent); got != parent {
			s.Errorf("the pod template says %q, want the trace %s", got, parent)
		}
	})
}

// forbidden is how an API server refuses a patch for good, for what an admission plugin says.
func forbidden(why string) error {
	return apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New(why))
}

func TestLedgerARefusalIsTold(t *testing.T) {
	refused := func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.atRest("secret/db")
		s.refuse("web", forbidden("it is Friday"))
		s.set("secret/db", "password", "two")
	}
	testFixtures(t, []fixture{
		{name: "and not again by a leader that begins after that", play: func(s *scene) { refused(s); s.rest(); s.restart(); s.pass(time.Hour) }},
		{
			name: "by the next leader, if it was not before",
			play: func(s *scene) { refused(s); s.pass(10 * time.Second); s.restart(); s.pass(time.Hour) },
			want: ends{told: "web failed patch-denied"},
		},
	})
}

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
		{name: "a dry run leads nobody", play: func(s *scene) {
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
		}, want: ends{rolls: "web", told: "web skipped dry-run; web started content-changed; web completed rolled-out"}},
	})
}

// The stream then no longer has the event that it had when the actuator began to read.
func TestLedgerASourceIsAnnotatedWhileAnActuatorBegins(t *testing.T) {
	begins := func(before, between, meanwhile func(*scene)) func(*scene) {
		return func(s *scene) {
			s.options.LeaderElect = true
			s.workload("web", reads("secret/db"))
			leader := s.atRest("secret/db")
			before(s)
			s.rest()
			leader.stop()
			webOptsIn(s)
			s.pass(10 * time.Minute)
			between(s)
			s.pass(10 * time.Minute)
			s.start()
			meanwhile(s)
			s.mark("secret/db")
			s.pass(11 * time.Minute)
		}
	}
	nothing := func(*scene) {}
	testFixtures(t, []fixture{
		{name: "a change before the opt-in rolls nobody", play: begins(dbChanges, nothing, nothing)},
		{name: "a change while nobody led rolls", play: begins(nothing, dbChanges, nothing), want: rolled("web")},
		{name: "a change meanwhile rolls", play: begins(nothing, nothing, dbChanges), want: rolled("web")},
	})
}

// What a workload has a record of, it wanted already.
func TestLedgerADeletionWhileNobodyLeadsRollsWhoHasARecord(t *testing.T) {
	play(t, func(s *scene) {
		s.options.LeaderElect, s.options.RollOnDelete = true, true
		leader := s.beginReading("configmap/app?")
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
		{name: "a pattern that is added names nothing that changed before", play: func(s *scene) {
			s.workload("web", auto, reads("secret/db"))
			s.begin("secret/db", "configmap/release-1")
			s.set("configmap/release-1", "password", "two")
			s.rest()
			s.edit("web", on("secret/db, configmap/release-*"))
			s.pass(11 * time.Minute)
			s.restartFor(11 * time.Minute)
		}},
	})
}
