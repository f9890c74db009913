//go:build !race

package actuate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
)

func TestTheOutcomeOfAllThatIsPendingNamesTheNewestAsItsCause(t *testing.T) {
	play(t, func(s *scene) {
		s.options.MaxRolloutsPerNamespace = 1
		s.workload("web", auto, reads("secret/db", "configmap/app"))
		s.workload("busy", auto, reads("secret/other"))
		s.begin("secret/db", "configmap/app", "secret/other")
		s.stall("busy")
		s.set("secret/other", "password", "two")
		s.settle()
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
