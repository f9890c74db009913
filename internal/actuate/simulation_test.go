package actuate

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// simulation is a workload, the sources that it reads, a watcher, a stream and an actuator, in which anything may happen at
// any time. What the actuator decides with is real: baseline, plan, newRoll and merge. What is simulated is what it cannot
// know: what the pods have really read.
type simulation struct {
	*testing.T
	random *rand.Rand
	// calm is without failures, restarts and sources that go away. Then the actuator knows everything, and no roll is for
	// nothing.
	calm    bool
	version int
	sources []*simulatedSource
	w       *workload.Workload
	// waiting says that the pods cannot start. They do as soon as they can.
	waiting bool
	// startedAt is when they did.
	startedAt int

	baselines baselines
	// buffer is what was delivered and not taken yet.
	buffer   []events.Change
	pending  *pending
	inFlight *roll
	log      []string
}

// simulatedSource is a source, what the stream says of it, and what the pods have of it.
type simulatedSource struct {
	events.Source
	ref     workload.Reference
	uid     int
	version int
	data    map[string]string // nil: there is none

	// event is the last on the stream, and said its content. Sent is whether it was delivered, acked whether it is done with.
	event       events.Change
	said        map[string]string
	sent, acked bool
	// contents is what the workload reads, by the id of the event that tells of it, and publishedAt is when it was first told.
	contents    map[string]string
	publishedAt map[string]int

	// changedAt is when the content that the pods read last changed.
	changedAt int
	// pods is what the pods read when they started.
	pods string
	// podsEvent is the event that told of it. Empty: none ever did.
	podsEvent string
	// decided are the events that the actuator decided about. Others were superseded before it did.
	decided map[string]bool
	// strayed says that the actuator lost track of whether the pods started before or after a change.
	strayed bool
}

// contentOf writes a source's content as a text.
func contentOf(data map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(&b, "%s=%q ", name, data[name])
	}
	return b.String()
}

// printsOf are the fingerprints of a source's content: of each key, and of all.
func printsOf(data map[string]string) (keys map[string]events.Key, all string) {
	sum := func(text string) string {
		digest := fnv.New128a()
		digest.Write([]byte(text))
		return fmt.Sprintf("k0a1b2c3d:%x", digest.Sum(nil))
	}
	keys = make(map[string]events.Key, len(data))
	for name, value := range data {
		keys[name] = events.Key{Fingerprint: sum(name + "=" + value)}
	}
	return keys, sum(contentOf(data))
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{
		T: t, random: rand.New(rand.NewPCG(seed, 2)), calm: seed%2 == 0, version: 95,
		baselines: make(baselines), log: []string{fmt.Sprintf("seed %d", seed)},
	}
	// Of the Secret a and b are read, and without a the pods do not start. The ConfigMap is read as a whole.
	secret := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"a", "b"}, Required: []string{"a"}}
	config := workload.Reference{Kind: events.KindConfigMap, Name: "app", Optional: true}
	if s.calm {
		secret.Required, secret.Optional = nil, true
	}
	s.w = workloadOf(t, "auto", config, func(w *workload.Workload) { w.Refs = append(w.Refs, secret) })
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

// read is what pods that start now read of a source. It is false where they do not start.
func (source *simulatedSource) read() (string, bool) {
	if source.data == nil {
		return "absent", source.ref.Optional
	}
	read := maps.Clone(source.data)
	if source.ref.Keys != nil {
		maps.DeleteFunc(read, func(name, _ string) bool { return !slices.Contains(source.ref.Keys, name) })
	}
	return contentOf(read), !slices.ContainsFunc(source.ref.Required, func(name string) bool { _, there := read[name]; return !there })
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
		source.podsEvent, source.strayed = "", false
		if source.pods == source.contents[source.event.ID()] {
			source.podsEvent = source.event.ID()
		}
	}
}

// step has one thing happen.
func (s *simulation) step() {
	s.version++
	source := s.sources[s.random.IntN(len(s.sources))]
	switch n := s.random.IntN(100); {
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
	case n < 98:
		s.deliverAgain(source)
	case !s.calm:
		s.restart()
	}
	if s.waiting {
		s.startPods()
	}
}

func (s *simulation) change(source *simulatedSource) {
	name, value, n := []string{"a", "b", "c"}[s.random.IntN(3)], strconv.Itoa(s.random.IntN(3)), s.random.IntN(10)
	data := maps.Clone(source.data)
	switch {
	case data == nil:
		source.uid++
		data = maps.Clone(source.said)
		if n < 5 {
			data[name] = value
		}
	case n < 2 && !s.calm:
		data = nil
	case n < 4:
		delete(data, name)
	default:
		data[name] = value
	}
	before, _ := source.read()
	source.data, source.version = data, s.version
	if after, _ := source.read(); after != before {
		source.changedAt = s.version
	}
	s.notef("%d: %s is %v", s.version, source, data)
	if s.calm {
		s.watch(source)
	}
}

// watch publishes what there is to say of a source, as a watcher does.
func (s *simulation) watch(source *simulatedSource) {
	before, known := source.event, source.said != nil
	gone, same := before.Verb == events.VerbDeleted, known && maps.Equal(source.said, source.data)
	change := events.Change{
		Source: source.Source, Verb: events.VerbObserved, UID: "uid-" + strconv.Itoa(source.uid), ResourceVersion: strconv.Itoa(source.version),
		ChangedAt: before.ChangedAt,
	}
	switch {
	case source.data == nil && gone, same && !gone:
		return
	case source.data == nil:
		change = before
		change.Verb, change.Changed, change.Previous = events.VerbDeleted, nil, ""
	default:
		change.Keys, change.Fingerprint = printsOf(source.data)
		if known && !same {
			change.Verb, change.ChangedAt, change.Previous, change.Created = events.VerbChanged, change.ResourceVersion, before.Fingerprint, gone
		}
		for _, name := range []string{"a", "b", "c"} {
			was, wasThere := source.said[name]
			is, isThere := source.data[name]
			k := events.Key{Fingerprint: change.Keys[name].Fingerprint, ChangedAt: before.Keys[name].ChangedAt}
			if known && (was != is || wasThere != isThere) {
				change.Changed = append(change.Changed, name)
				k.ChangedAt = change.ResourceVersion
			}
			if k != (events.Key{}) {
				change.Keys[name] = k
			}
		}
		source.said = source.data
	}
	source.event, source.acked, source.sent = change, false, false
	if change.Verb != events.VerbDeleted {
		content, _ := source.read()
		source.contents[change.ID()] = content
		if _, before := source.publishedAt[content]; !before {
			source.publishedAt[content] = s.version
		}
	}
	s.notef("  %s %s %s", change.Source, change.Verb, change.ID())
}

// checkRoll checks that a roll is for something.
func (s *simulation) checkRoll(r *roll) {
	needed := false
	for _, decision := range r.decisions {
		if decision.Reason.Action() != plan.Roll {
			continue
		}
		last, before := s.w.Rolled[decision.Source.String()]
		if before && last.Fingerprint == decision.Record.Fingerprint {
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
	for range 10 {
		s.version++
		for _, source := range s.sources {
			s.watch(source)
			s.deliver(source)
		}
		for len(s.buffer) > 0 {
			s.take()
		}
		s.dispatch()
		s.finish(-1)
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
		decision := plan.Decide(s.w, source.event, nil)
		if decision.Reason.Action() != plan.Skip {
			s.failf("%s: its last event comes again and would have it %s: %s", source, decision.Reason.Action(), decision.Reason)
		}
		content, complete := source.read()
		switch {
		case s.waiting || !complete || content == source.pods:
		case content == "absent" || decision.Reason == plan.KeyMissing:
			// Running pods keep what they have.
		case (source.strayed || !source.decided[source.podsEvent]) && source.publishedAt[content] < s.startedAt:
			// They started with content that was superseded before the actuator decided about it, and by then it had gone back
			// to what it was before.
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
