package actuate

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// simulation is a workload, the sources that it reads, a watcher, a stream and an actuator, in which anything may happen at
// any time. The code that the actuator decides with is real: baselines, plan, newTask and merge. What it cannot know is
// simulated: what the pods have really read.
type simulation struct {
	*testing.T
	random *rand.Rand
	// calm means no failures, no restarts, and no sources that go away. Then the actuator knows everything, and every roll is
	// needed.
	calm    bool
	policy  plan.Policy
	version int
	sources []*simulatedSource
	w       *workload.Workload
	// waiting says that the pods cannot start. They do as soon as they can.
	waiting bool
	// startedAt is when they started.
	startedAt int
	opt       optIns
	// removed says that somebody has removed the record from the workload, so that only the actuator knows it.
	removed bool

	baselines baselines
	// base and gapFrom are plan.Memory.Base and plan.Memory.GapFrom. What was not acked when the actuator began came while nobody led.
	base    map[events.Source]plan.Base
	gapFrom map[events.Source]time.Time
	// buffer is what was delivered but not taken yet.
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
	// The workload reads the keys a and b of the Secret, and all of the ConfigMap. Without a, the pods do not start.
	secret := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"a", "b"}, Required: []string{"a"}}
	config := workload.Reference{Kind: events.KindConfigMap, Name: "app", Optional: true}
	if s.calm {
		secret.Required, secret.Optional = nil, true
	}
	d := deploymentOf("web", "db", rollOn("auto"))
	d.ResourceVersion, d.CreationTimestamp = "50", metav1.NewTime(written.Add(-time.Hour))
	var ok bool
	if s.w, ok = workload.Read(deployments, d, workload.Reading{}); !ok {
		t.Fatal("it is no workload")
	}
	s.w.Refs, s.w.Progress, s.w.Written = []workload.Reference{config, secret}, workload.Progress{}, written.Add(-time.Hour)
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
	s.begin()
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

// step makes one thing happen.
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

// checkRoll checks that a roll is needed.
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
	// If somebody deployed while the patch was under way, the actuator could not know.
	if s.calm && !needed && r.workload == s.w {
		s.failf("it is rolled for %s, which its pods have read", r.cause)
	}
}

// deploy changes the pod template, as somebody else does.
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

// settle brings everything to an end.
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

// check checks that the pods have the right content, and that nothing more happens whatever is delivered again.
func (s *simulation) check() {
	for _, source := range s.sources {
		// It changed before the workload wanted it, or it was no longer known since when that was.
		earlier := source.toldAt <= s.opt.at || source.unlinked
		decision := s.decide(source.event, plan.Memory{})
		if decision.Reason.Action() != plan.Skip && !earlier {
			s.failf("%s: its last event comes again and would have it %s: %s", source, decision.Reason.Action(), decision.Reason)
		}
		content, complete := source.read()
		switch {
		case s.waiting || !complete || content == source.pods || earlier:
		case content == "absent" && !s.policy.Delete || content == "absent" && !source.ref.Optional || decision.Reason == plan.KeyMissing:
			// Running pods keep what they have.
		case (source.strayed || !source.decided[source.podsEvent]) && source.publishedAt[content] < s.startedAt:
			// They started with content that was superseded before the actuator decided about it, and by then the content before
			// that was back.
		case source.unknown:
			// It was no longer known that it had changed.
		case source.pods == "absent" && source.event.Verb == events.VerbObserved:
			// They started without it, and it came back with the content that it had before.
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

// Whatever happens, in whatever order, the pods have the last content in the end, no event that is delivered again has an
// effect, and no content is rolled for twice in a row.
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
