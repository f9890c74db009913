//go:build !race

package actuate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// situation is one in which a reason is given.
type situation struct {
	reason  plan.Reason
	options func(*actuate.Options)
	// given makes what there is, and starts the actuator. By default, these are the workload web, and another one, peer, if that has aspects, and the
	// source secret/db, which was observed. The workload reads all of that by default.
	given     func(*scene)
	web, peer []aspect
	// before happens after that, and act at last: the reason is one for what becomes of it. By default, the source changes.
	before, act func(*scene)
	// unexplained says that explain cannot give the reason: it depends on what the actuator does, did before, or has seen. about is the workload
	// that explain is asked about, web by default.
	unexplained bool
	about       string
	// untraced says that the event of the source is one that cannot change anything, which has no span.
	untraced bool
}

func (tt *situation) begin(s *scene) {
	s.Helper()
	if tt.given != nil {
		tt.given(s)
		return
	}
	if tt.web == nil {
		tt.web = reading("secret/db")
	}
	s.workload("web", tt.web...)
	if tt.peer != nil {
		s.workload("peer", tt.peer...)
	}
	s.begin("secret/db")
}

// play plays the situation, and compares what people can find out about it.
func (tt *situation) play(s *scene) {
	s.Helper()
	seen, name := s.instrument(), tt.reason.String()
	if tt.options != nil {
		tt.options(&s.options)
	}
	tt.begin(s)
	if tt.before != nil {
		tt.before(s)
	}
	counted, _ := seen.measurements().value("keyturn.decisions", "reason", name)
	logged, spans, outcomes, written := len(s.logText()), len(seen.spans.Ended()), len(s.outcomesSoFar()), len(s.kubernetesEvents())
	if tt.act == nil {
		tt.act = dbChanges
	}
	tt.act(s)
	if !tt.unexplained {
		if explained := tt.explain(s); explained != tt.reason {
			s.Errorf("explain decides %s, want %s", explained, tt.reason)
		}
	}
	s.settle()
	s.pass(10 * time.Second)

	if log := strings.ReplaceAll(s.logText()[logged:], "\n", " "); !strings.Contains(log, " reason="+name+" ") {
		s.Errorf("no log line has the reason %s", name)
	}
	says := false
	for _, span := range seen.spans.Ended()[spans:] {
		for _, event := range span.Events() {
			says = says || event.Name == name && attributeOf(event.Attributes, "keyturn.reason") == name
		}
	}
	if says == tt.untraced {
		s.Errorf("a span has an event of the name, with the attribute keyturn.reason: %t", says)
	}
	if total, _ := seen.measurements().value("keyturn.decisions", "reason", name); total != counted+1 {
		s.Errorf("keyturn.decisions has counted %d, want 1", total-counted)
	}
	told := false
	for _, outcome := range s.outcomesSoFar()[outcomes:] {
		told = told || outcome.Reason == name && outcome.Message != ""
	}
	if told == tt.reason.Silent() {
		s.Errorf("there is an outcome: %t", told)
	}
	heard, notices := false, s.kubernetesEvents()
	for _, event := range notices[min(written, len(notices)):] { // Those of another leader are counted anew.
		heard = heard || strings.HasPrefix(event.Message, name+": ")
	}
	if heard != plan.Loud(name) {
		s.Errorf("there is a Kubernetes Event: %t", heard)
	}
}

// explain decides as explain does: with the workload and the last event of the source, and without the past.
func (tt *situation) explain(s *scene) plan.Reason {
	s.Helper()
	about := tt.about
	if about == "" {
		about = "web"
	}
	kinds, err := s.options.Kinds()
	testkit.Must(s, err)
	how, err := s.options.Reading(kinds)
	testkit.Must(s, err)
	kind, _ := kinds.Named(parse(about).kind)
	w, ok := workload.Read(kind, s.object(about), how)
	if !ok {
		s.Fatalf("%s is no workload", about)
	}
	return plan.Decide(w, s.of("secret/db").published, plan.Memory{}, s.options.Policy()).Reason
}

// Three reasons are left out, which are no decisions: unknown is about a source that the stream does not know, busy about a workload that is being
// patched, and undone about a rollout that a person has undone.
func TestEveryReasonIsToldEverywhereFromOneDefinition(t *testing.T) {
	played := map[plan.Reason]bool{
		plan.Unknown: true, plan.Busy: true, plan.Undone: true,
	}
	for _, tt := range situations() {
		played[tt.reason] = true
		t.Run(tt.reason.String(), func(t *testing.T) { play(t, tt.play) })
	}
	for _, reason := range plan.Reasons() {
		if !played[reason] {
			t.Errorf("%s is not told", reason)
		}
	}
}
