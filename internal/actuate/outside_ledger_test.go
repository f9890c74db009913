//go:build !race

package actuate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
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

// rolledTimes is the end of a play in which web is rolled so often for content that has changed.
func rolledTimes(count int) ends { return rolled(slices.Repeat([]string{"web"}, count)...) }

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

// namesOf returns the names of so many workloads.
func namesOf(what string, count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%03d", what, i)
	}
	return names
}

// listed returns what a text lists.
func listed(text, separator string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, separator)
}

// People have chosen for hundreds of workloads that they wait, and then everything is restarted at once.
func TestLedgerManyThatWaitForPeopleOutliveARestartOfEverything(t *testing.T) {
	held, windowed := namesOf("held", 250), namesOf("windowed", 250)
	play(t, func(s *scene) {
		for _, name := range held {
			s.workload(name, auto, onHold, reads("secret/db"))
		}
		for _, name := range windowed {
			s.workload(name, auto, annotated(workload.AnnotationWindow, "0 1 * * * for 1h UTC"), reads("secret/db"))
		}
		leader := s.begin("secret/db")
		s.rest()
		s.set("secret/db", "password", "two")
		s.rest()
		s.nats.Stop()
		leader.kill()
		s.pass(time.Minute)
		s.nats.Start()
		s.startFor(11 * time.Minute)
		s.wantWrites()
		s.wantTold()
		s.wantNotices()
		for _, name := range held {
			s.edit(name, letGo)
		}
		s.pass(time.Minute)
		s.wantWrites(each(held, " rolled")...)
		s.passUntil(midnight.Add(time.Hour - time.Second))
		s.wantWrites()
		s.pass(3*time.Minute + 10*time.Second) // Each has its own moment within the first three minutes of the window.
		s.wantWrites(each(windowed, " rolled")...)
		for _, name := range slices.Concat(held, windowed) {
			s.wantRecord(name, "secret/db")
		}
	})
}

// each returns names with what becomes of them.
func each(names []string, becomes string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = name + becomes
	}
	return all
}

func TestLedgerTwelveRotationsTwoSecondsApartRollAFewTimes(t *testing.T) {
	var secrets []string
	for _, month := range []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"} {
		secrets = append(secrets, "secret/"+month)
	}
	play(t, func(s *scene) {
		s.workload("web", auto, reads(secrets...))
		s.atRest(secrets...)
		for _, name := range secrets {
			s.set(name, "password", "two")
			s.pass(2 * time.Second)
		}
		s.pass(11 * time.Minute)
		for _, name := range secrets {
			s.wantRecord("web", name)
		}
		s.wantEnds(rolledTimes(5))
	})
}

// A patch tests that nobody has rolled the workload meanwhile.
func TestLedgerTwoActuatorsThatBothLeadRollAWorkloadOnce(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.observe("secret/db")
		s.start()
		s.start()
		s.rest()
		s.set("secret/db", "password", "two")
		s.pass(11 * time.Minute)
		s.wantEnds(rolled("web"))
	})
}

// An outcome is of what a leader has seen happen.
func TestLedgerWhatIsSkippedIsToldOnce(t *testing.T) {
	skipping := func(happens func(*scene)) func(*scene) {
		return func(s *scene) {
			s.workload("web", auto, reads("secret/db#password"))
			s.atRest("secret/db")
			happens(s)
			s.pass(11 * time.Minute)
		}
	}
	testFixtures(t, []fixture{
		{
			name: "and not by the next leader",
			play: skipping(func(s *scene) {
				s.set("secret/db", "user", "two")
				s.rest()
				s.restart()
			}),
			want: ends{quiet: true},
		},
		{
			name: "and not at all if it happens while nobody leads",
			play: skipping(func(s *scene) {
				for _, leader := range s.running {
					leader.stop()
				}
				s.set("secret/db", "user", "two")
				s.restart()
			}),
		},
		{
			name: "and not again if the watcher publishes it again",
			play: skipping(func(s *scene) {
				s.set("secret/db", "user", "two")
				s.rest()
				s.loseEvents("secret/db")
				s.again("secret/db")
			}),
		},
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
		{
			name: "and not again by a leader that begins after that",
			play: func(s *scene) { refused(s); s.rest(); s.restart(); s.pass(time.Hour) },
		},
		{
			name: "by the next leader, if it was not before",
			play: func(s *scene) { refused(s); s.pass(10 * time.Second); s.restart(); s.pass(time.Hour) },
			want: ends{told: "web failed patch-denied"},
		},
		{
			name: "of each content",
			play: func(s *scene) {
				refused(s)
				s.rest()
				s.set("secret/db", "password", "three")
				s.pass(time.Hour)
			},
			want: ends{told: "web failed patch-denied"},
		},
		{
			name: "and then holds up no higher wave",
			play: func(s *scene) {
				s.workload("api", auto, annotated("keyturn.dev/wave", "1"), reads("secret/db"))
				refused(s)
				s.pass(20 * time.Second)
				s.wantRolls()
				s.pass(11 * time.Minute)
			},
			want: ends{
				rolls: "api",
				told:  "api held lower-wave; api started content-changed; api completed rolled-out; web failed patch-denied",
			},
		},
	})
}

// Everything that people have chosen is on the workload, or told by the clock.
func TestLedgerAWorkloadWaitsForItsIntervalOnceOverALeader(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, annotated(workload.AnnotationMinInterval, "30m"), reads("secret/db"))
		s.atRest("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		s.set("secret/db", "password", "three")
		s.rest()
		s.restartFor(15 * time.Minute)
		s.wantRolls()
		s.wantTold()
		s.pass(10 * time.Minute)
		s.wantEnds(rolled("web"))
	})
}
