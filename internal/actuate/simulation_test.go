package actuate

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// simulation is a workload, the sources that it reads, a watcher, a stream and an actuator, in which anything may happen at
// any time. What the actuator decides with is real: baseline, plan, newTask and merge. What is simulated is what it cannot
// know: what the pods have really read.
type simulation struct {
	*testing.T
	random *rand.Rand
	// calm is without failures, restarts and sources that go away. Then the actuator knows everything, and no roll is for
	// nothing.
	calm    bool
	policy  plan.Policy
	version int
	sources []*simulatedSource
	w       *workload.Workload
	// waiting says that the pods cannot start. They do as soon as they can.
	waiting bool
	// startedAt is when they did.
	startedAt int
	opt       optIns

	baselines baselines
	// buffer is what was delivered and not taken yet.
	buffer   []*events.Delivery
	pending  *pending
	inFlight *task
	log      []string
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{
		T: t, random: rand.New(rand.NewPCG(seed, 2)), calm: seed%2 == 0, version: 95,
		policy: plan.Policy{Delete: seed%3 == 0}, baselines: make(baselines), log: []string{fmt.Sprintf("seed %d", seed)},
	}
	// Of the Secret a and b are read, and without a the pods do not start. The ConfigMap is read as a whole.
	secret := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"a", "b"}, Required: []string{"a"}}
	config := workload.Reference{Kind: events.KindConfigMap, Name: "app", Optional: true}
	if s.calm {
		secret.Required, secret.Optional = nil, true
	}
	s.w = workloadOf(t, "auto", config, func(w *workload.Workload) { w.Refs = append(w.Refs, secret) })
	s.opt.all = s.w.OptIn
	for _, ref := range s.w.Refs {
		s.sources = append(s.sources, &simulatedSource{
			Source: events.Source{Kind: ref.Kind, Namespace: "shop", Name: ref.Name}, ref: ref,
			uid: 1, version: 90, data: map[string]string{"a": "0", "b": "0", "c": "0"},
			contents: make(map[string]string), publishedAt: make(map[string]int), decided: make(map[string]bool),
		})
	}
	for _, source := range s.sources {
		s.watch(source)
	}
	s.startPods()
	return s
}

func (s *simulation) startPods() {
	for _, source := range s.sources {
		if _, complete := source.read(); !complete {
			s.waiting = true
			return
		}
	}
	s.waiting, s.startedAt = false, s.version
	for _, source := range s.sources {
		source.pods, _ = source.read()
		source.podsEvent, source.strayed, source.unknown = "", false, false
		if source.pods == source.contents[source.event.ID()] {
			source.podsEvent = source.event.ID()
		}
	}
}

// step has one thing happen.
func (s *simulation) step() {
	s.version++
	source := s.sources[s.random.IntN(len(s.sources))]
	switch n := s.random.IntN(130); {
	case n >= 100:
		s.stepRecords()
	case n < 25:
		s.change(source)
	case n < 45:
		s.watch(source)
	case n < 60:
		s.deliver(source)
	case n < 75:
		s.take()
	case n < 85:
		s.dispatch()
	case n < 93:
		s.finish(s.random.IntN(6))
	case n < 96:
		s.deploy()
	case n < 97:
		s.deliverAgain(source)
	case n < 98:
		s.deliverLate(source)
	case n < 99 && !s.calm:
		s.restart()
	case !s.calm:
		s.forget(source)
	}
	if s.waiting {
		s.startPods()
	}
	s.serve()
}

// checkRoll checks that a roll is for something.
func (s *simulation) checkRoll(r *task) {
	needed := false
	for _, decision := range r.decisions {
		if decision.Reason.Action() != plan.Roll {
			continue
		}
		last, before := s.w.Rolled[decision.Source.String()]
		_, linked := s.w.Link(decision.Source)
		if before && last.Fingerprint == decision.Record.Fingerprint && !linked {
			s.failf("it is rolled for %s twice in a row", last)
		}
		for _, source := range s.sources {
			needed = needed || source.Source == decision.Source && source.changedAt > s.startedAt
		}
	}
	// Where somebody deployed while the patch was under way nobody could know.
	if s.calm && !needed && r.workload == s.w {
		s.failf("it is rolled for %s, which its pods have read", r.cause)
	}
}

// deploy has somebody else change the pod template.
func (s *simulation) deploy() {
	after := *s.w
	after.Version = strconv.Itoa(s.version)
	after.TemplateVersion = after.Version
	if !s.calm && s.random.IntN(4) == 0 {
		after.TemplateVersion = "" // It was seen in a list.
	}
	s.w = &after
	s.startPods()
	if after.TemplateVersion == "" || s.inFlight != nil {
		s.lose()
	}
	s.notef("%d: deployed", s.version)
}

// settle has everything come to an end.
func (s *simulation) settle() {
	s.version++
	s.optIn()
	for range 10 {
		s.version++
		s.seeOptIn()
		s.recall()
		for _, source := range s.sources {
			s.watch(source)
			s.deliver(source)
		}
		for len(s.buffer) > 0 {
			s.take()
		}
		s.dispatch()
		s.finish(-1)
		s.record()
		if s.waiting {
			s.startPods()
		}
	}
	for _, source := range s.sources {
		if !source.acked || s.pending != nil || s.inFlight != nil {
			s.failf("%s: it does not come to an end", source)
		}
	}
}

// check checks that the pods have what they are to have, and that nothing more happens whatever comes again.
func (s *simulation) check() {
	for _, source := range s.sources {
		// It changed before the workload asked for it, or nobody knew any more since when that was.
		earlier := source.toldAt <= s.opt.at || source.unlinked
		decision := s.policy.Decide(s.w, source.event, plan.Past{})
		if decision.Reason.Action() != plan.Skip && !earlier {
			s.failf("%s: its last event comes again and would have it %s: %s", source, decision.Reason.Action(), decision.Reason)
		}
		content, complete := source.read()
		switch {
		case s.waiting || !complete || content == source.pods || earlier:
		case content == "absent" && !s.policy.Delete || content == "absent" && !source.ref.Optional || decision.Reason == plan.KeyMissing:
			// Running pods keep what they have.
		case (source.strayed || !source.decided[source.podsEvent]) && source.publishedAt[content] < s.startedAt:
			// They started with content that was superseded before the actuator decided about it, and by then it had gone back
			// to what it was before.
		case source.unknown:
			// Nobody knew any more that it had changed.
		case source.pods == "absent" && source.event.Verb == events.VerbObserved:
			// They started without it, and it came back as it had been.
		default:
			s.failf("%s: the pods have %s, not %s: %s (%v)", source, source.pods, content, decision.Reason, s.w.Rolled)
		}
	}
}

func (s *simulation) notef(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (s *simulation) failf(format string, args ...any) {
	s.Helper()
	for _, line := range s.log {
		s.Log(line)
	}
	s.Fatalf(format, args...)
}

// Whatever happens, in whatever order: in the end the pods have the last content that they are to have, no event that
// comes again does anything, and no content is rolled for twice in a row.
func TestWhateverHappensThePodsHaveTheLastContent(t *testing.T) {
	for seed := range uint64(3000) {
		s := newSimulation(t, seed)
		for range 5 + s.random.IntN(100) {
			s.step()
		}
		s.settle()
		s.check()
	}
}
