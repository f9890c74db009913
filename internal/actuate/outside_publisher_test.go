//go:build !race

package actuate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
)

// More outcomes than are published at a time wait until NATS is there again.
func TestOutcomesArePublishedUntilNoneIsLeft(t *testing.T) {
	const many = 300
	play(t, func(s *scene) {
		s.options.MaxRollouts = 0
		var names []string
		for i := range many {
			name := fmt.Sprintf("web-%03d", i)
			names = append(names, name)
			s.workload(name, auto, reads("secret/db"))
		}
		s.begin("secret/db")
		s.set("secret/db", "password", "two")
		s.pass(s.options.Settle / 2)
		s.nats.Stop()
		s.pass(20 * time.Second)
		s.wantRolls(names...)
		s.nats.Start()
		s.pass(2 * time.Minute)
		told := make(map[string][]string)
		for _, outcome := range s.told() {
			name, what, _ := strings.Cut(outcome, " ")
			told[name] = append(told[name], what)
		}
		want := []string{"started content-changed", "completed rolled-out"}
		for _, name := range names {
			if got := told[name]; !slices.Equal(got, want) {
				s.Errorf("of %s it is told %q, want %q", name, got, want)
			}
		}
		s.wantRolls()
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
		s.options.MaxRolloutsPerNamespace = 1
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
			Reason:   "namespace-limit-reached", Message: plan.NamespaceLimit.Sentence(),
			Sources: []events.OutcomeSource{
				{
					Source: "configmap/app", Fingerprint: newest.Fingerprint, ResourceVersion: newest.ResourceVersion, Keys: []string{"user"},
					Event: newest.ID(),
				},
				{
					Source: "secret/db", Fingerprint: older.Fingerprint, ResourceVersion: older.ResourceVersion, Keys: []string{"password"},
					Event: older.ID(),
				},
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
