//go:build !race

package actuate_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// outboxPatience is how long outcomes wait at most while patches are under way, and outboxSize how many do.
const (
	outboxPatience = 5 * time.Second
	outboxSize     = 4096
)

func TestOutcomesLetPatchesGoFirst(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db", "secret/own"))
		s.workload("slow", auto, reads("secret/db"))
		s.begin("secret/db", "secret/own")
		s.patchesTake("slow", 2*outboxPatience)
		s.settled("secret/own", "password", "two")
		s.wantTold("web started content-changed", "web completed rolled-out") // No patch is under way.

		s.pass(time.Minute)
		s.rotate("two", "web", "web")
		s.pass(outboxPatience - time.Second)
		s.wantTold()
		s.pass(2 * time.Second) // The patch of the other one is still under way.
		s.wantRolls()
		s.wantTold("web started content-changed", "web completed rolled-out")
		s.pass(outboxPatience)
		s.wantRolls("slow")
		s.wantTold("slow started content-changed", "slow completed rolled-out")
	})
}

// takeOnly lets the stream take nothing but the events of sources, until the returned function is called.
func (s *scene) takeOnly(names ...string) (end func()) {
	s.Helper()
	js := s.jetStream()
	stream, err := js.Stream(s.Context(), events.StreamChanges)
	testkit.Must(s, err)
	all := stream.CachedInfo().Config
	take := func(subjects []string) {
		s.Helper()
		config := all
		config.Subjects = subjects
		natstest.Publish(s.T, func() error {
			_, err := js.UpdateStream(s.Context(), config)
			return err
		})
	}
	var subjects []string
	for _, name := range names {
		subjects = append(subjects, events.Subject("demo", sourceNamed(name)))
	}
	take(subjects)
	return func() {
		s.Helper()
		take(all.Subjects)
	}
}

// Nobody reads what changes again and again, and each workload is told so each time.
func TestNothingIsDecidedWhileTooManyOutcomesWait(t *testing.T) {
	const readers = 64
	play(t, func(s *scene) {
		seen := s.instrument()
		behind := func() int64 {
			sources, _ := seen.measurements().value("keyturn.sources.behind", "", "")
			return sources
		}
		s.workload("web", auto, reads("secret/db"))
		for i := range readers {
			s.workload("reader-"+strconv.Itoa(i), auto, reads("secret/many#user"))
		}
		s.begin("secret/db", "secret/many")
		end := s.takeOnly("secret/db", "secret/many")
		s.rotate("two", "web") // A few may wait.
		for i := range outboxSize/readers + 2 {
			s.set("secret/many", "password", strconv.Itoa(i))
			s.pass(2 * s.options.Settle) // Each is decided alone.
		}
		s.set("secret/db", "password", "three")
		s.pass(time.Minute)
		s.wantRolls()
		if behind() == 0 {
			s.Error("no source is shown that the actuator has not taken")
		}
		end()
		s.pass(time.Minute)
		s.wantRolls("web")
		if sources := behind(); sources > 0 {
			s.Errorf("%d sources are shown that the actuator has not taken, want none", sources)
		}
	})
}

func TestAnActuatorEndsWithoutNATS(t *testing.T) {
	play(t, func(s *scene) {
		actuator := s.beginWeb()
		s.set("secret/db", "password", "two")
		s.pass(s.options.Settle / 2)
		s.nats.Stop()
		s.pass(2 * time.Second)
		s.wantRolls("web")
		began := s.elapsed()
		actuator.stop()
		if took := s.elapsed() - began; took > 20*time.Second {
			s.Errorf("it took %s, want some attempts of 5s each", took)
		}
		if !strings.Contains(s.logText(), "outcomes not published") {
			s.Error("the log does not say that outcomes are lost")
		}
		s.nats.Start()
		s.pass(time.Second)
		s.wantTold()
		s.startFor(time.Minute)
		s.wantRolls()
	})
}

func TestTheOutcomeOfAllThatIsPendingNamesTheNewestAsItsCause(t *testing.T) {
	play(t, func(s *scene) {
		s.options.MaxRollouts = 1
		s.workload("web", auto, reads("secret/db", "configmap/app"))
		s.workload("busy", auto, reads("secret/other"))
		s.begin("secret/db", "configmap/app", "secret/other")
		s.stall("busy")
		s.settled("secret/other", "password", "two")
		s.set("secret/db", "password", "two")
		s.set("configmap/app", "user", "two")
		began := s.elapsed()
		s.settle()

		all := s.outcomesSoFar()
		got, of := all[len(all)-1], metaOf(s.object("web"))
		older, newest := s.of("secret/db").published, s.of("configmap/app").published
		want := events.Outcome{
			Cluster: "demo", Verb: events.VerbHeld, ResourceVersion: of.GetResourceVersion(), Cause: newest.ID(),
			Workload: events.Workload{Kind: "deployment", Namespace: namespace, Name: "web", UID: string(of.GetUID())},
			Reason:   "limit-reached", Message: plan.Limit.Sentence(),
			Sources: []events.OutcomeSource{
				{Source: "configmap/app", Fingerprint: newest.Fingerprint, ResourceVersion: newest.ResourceVersion, Keys: []string{"user"}, Event: newest.ID()},
				{Source: "secret/db", Fingerprint: older.Fingerprint, ResourceVersion: older.ResourceVersion, Keys: []string{"password"}, Event: older.ID()},
			},
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(events.Outcome{}, "Time")); diff != "" {
			s.Errorf("(-want +got):\n%s", diff)
		}
		if at := got.Time.Sub(midnight); at < began || at > s.elapsed() {
			s.Errorf("it was known after %s, want between %s and %s", at, began, s.elapsed())
		}
	})
}
