package actuate

import (
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
)

// begin does what state.Complete does.
func (s *simulation) begin() {
	s.base, s.gapFrom = make(map[events.Source]plan.Base), make(map[events.Source]time.Time)
	for _, source := range s.sources {
		if last := source.event; last.Verb != "" {
			s.base[source.Source] = plan.Base{Version: last.ResourceVersion, Deleted: last.Verb == events.VerbDeleted}
			if source.acked {
				s.gapFrom[source.Source] = timeOf(s.version)
			}
		}
	}
}

// decide does what the decider does.
func (s *simulation) decide(change events.Change, memory plan.Memory) plan.Decision {
	base := s.base[change.Source]
	memory.Now, memory.Since, memory.Base, memory.GapFrom = timeOf(s.version), timeOf(s.version), &base, s.gapFrom[change.Source]
	return plan.Decide(s.w, change, memory, s.policy)
}

// deliver delivers the last event of a source.
func (s *simulation) deliver(source *simulatedSource) {
	if !source.sent && !source.acked {
		source.sent = true
		s.buffer = append(s.buffer, source.last())
	}
}

// deliverAgain delivers the last event of a source once more, acked or not.
func (s *simulation) deliverAgain(source *simulatedSource) {
	if source.sent {
		s.buffer = append(s.buffer, source.last())
	}
}

// deliverLate delivers an event of a source that was superseded since.
func (s *simulation) deliverLate(source *simulatedSource) {
	if n := len(source.superseded); n > 0 {
		s.buffer = append(s.buffer, source.superseded[s.random.IntN(n)])
	}
}

// take does what intake does.
func (s *simulation) take() {
	if len(s.buffer) == 0 {
		return
	}
	delivery := s.buffer[0]
	change := delivery.Change
	s.buffer = s.buffer[1:]
	if s.baselines.isLate(delivery) || s.pending.supersedes(delivery) || s.inFlight != nil && s.inFlight.pending.supersedes(delivery) {
		return
	}
	from := s.baselines.next(delivery, !s.w.OptIn.Empty())
	var c *pendingChange
	if s.pending != nil {
		c = s.pending.changes[change.Source]
	}
	if c == nil {
		decision := s.decide(change, plan.Memory{From: from})
		s.notef("  took %s %s: %s", change.Source, change.ID(), decision.Reason)
		if s.inFlight == nil && decision.Reason.Action() == plan.Skip {
			s.conclude(change)
			return
		}
		c = &pendingChange{from: from, owed: s.inFlight == nil && decision.Owes()}
	}
	if s.pending == nil {
		s.pending = newPending(s.w.Key(), written)
	}
	c.change, c.event = change, s.inFlightOf(delivery)
	s.pending.changes[change.Source] = c
}

func (s *simulation) inFlightOf(delivery *events.Delivery) *inFlightEvent {
	return &inFlightEvent{delivery: delivery, span: trace.SpanFromContext(s.Context())}
}

// conclude does what the concluder does.
func (s *simulation) conclude(change events.Change) {
	for _, source := range s.sources {
		if source.Source == change.Source {
			source.decided[change.ID()] = true
			source.acked = source.acked || source.event.ID() == change.ID()
		}
	}
}

// dispatch does what dispatcher.act does.
func (s *simulation) dispatch() {
	if s.pending == nil || s.inFlight != nil {
		return
	}
	p := s.pending
	s.pending = nil
	var doing []plan.Decision
	for source, c := range p.changes {
		decision := s.decide(c.change, plan.Memory{From: c.from, Owed: c.owed})
		c.owed = c.owed || decision.Owes()
		s.notef("  decided %s %s: %s", source, c.change.ID(), decision.Reason)
		if decision.Reason.Action() == plan.Skip {
			delete(p.changes, source)
			s.conclude(c.change)
			continue
		}
		doing = append(doing, decision)
	}
	if len(doing) == 0 {
		return
	}
	r, err := newTask(deployments, s.w, doing, p)
	if err != nil {
		s.failf("no patch: %v", err)
	}
	s.inFlight = r
}

// The ways in which a patch fails. In any other case it succeeds.
const (
	patchRefused = iota
	answerLost
)

// finish does what the API server and completion.finish do.
func (s *simulation) finish(outcome int) {
	r := s.inFlight
	if r == nil {
		return
	}
	s.inFlight = nil
	failed := !s.calm && (outcome == patchRefused || outcome == answerLost)
	if !failed || outcome == answerLost {
		s.apply(r)
	}
	if !failed {
		for _, decision := range r.decisions {
			s.conclude(r.pending.changes[decision.Source].change)
		}
		return
	}
	s.notef("  the patch failed")
	if s.pending != nil {
		s.pending.merge(r.pending)
	} else {
		s.pending = r.pending
	}
	s.pending.forgetBaselines()
}

// apply applies a patch as the API server does.
func (s *simulation) apply(r *task) {
	after := *s.w
	after.Version = strconv.Itoa(s.version)
	after.Rolled = recordOf(setIn(r.patch.Body, annotationRolled))
	s.notef("%d: patched (rolls: %t): %v", s.version, r.rolls, after.Rolled)
	if r.rolls {
		s.checkRoll(r)
		after.TemplateVersion = after.Version
		s.startPods()
	}
	after.LinkAfter(s.w, "")
	s.w, s.removed = &after, false
}

// restart makes the actuator forget what it knows. What is not acked is delivered again.
func (s *simulation) restart() {
	s.baselines = make(baselines)
	s.pending, s.inFlight, s.buffer = nil, nil, nil
	after := *s.w
	after.TemplateVersion = ""
	s.w = &after
	s.forgetLinks()
	s.forgetRecord()
	s.lose()
	for _, source := range s.sources {
		source.sent, source.superseded = false, nil
	}
	s.begin()
	s.notef("restarted")
}

// forgetRecord makes the actuator forget a record that is no longer on the workload.
func (s *simulation) forgetRecord() {
	if !s.removed {
		return
	}
	s.removed = false
	after := *s.w
	after.Rolled = nil
	s.w = &after
	for _, source := range s.sources {
		source.unknown = source.unknown || !source.acked
	}
}

// lose makes it unknown whether the pods started before or after a change that is not decided yet.
func (s *simulation) lose() {
	for _, source := range s.sources {
		source.strayed = source.strayed || !source.acked
	}
}
