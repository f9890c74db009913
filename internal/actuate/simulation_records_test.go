package actuate

import (
	"maps"
	"slices"
	"strconv"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// optIns is how a workload opts in to its sources, and how the actuator learns of it.
type optIns struct {
	// all is what it wants while it is opted in.
	all workload.OptIn
	// out says that it wants nothing.
	out bool
	// at is the version of the write by which it last opted in, and unseen says that the actuator has not seen that write.
	at     int
	unseen bool
	// asked are the sources whose last event is to be looked at again.
	asked []*simulatedSource
}

// stepRecords makes one thing happen to the record or to the opt-in.
func (s *simulation) stepRecords() {
	switch n := s.random.IntN(10); {
	case n < 3:
		s.record()
	case n < 4:
		s.optOut()
	case n < 6:
		s.optIn()
	case n < 7:
		s.seeOptIn()
	case n < 9:
		s.recall()
	case !s.calm:
		s.removed = true
		s.notef("%d: the record is removed", s.version)
	}
}

// rewrite writes the workload without an effect on the pods.
func (s *simulation) rewrite(write func(*workload.Workload)) {
	after := *s.w
	after.Version = strconv.Itoa(s.version)
	write(&after)
	after.LinkAfter(s.w, "")
	s.w = &after
}

// record does what the recorder does.
func (s *simulation) record() {
	if s.pending != nil || s.inFlight != nil {
		return
	}
	s.removed = false
	for _, source := range s.sources {
		decision := s.decide(source.event, plan.Memory{})
		if !decision.Records || !source.acked {
			continue // What is not acked is delivered first.
		}
		s.rewrite(func(after *workload.Workload) {
			after.Rolled = maps.Clone(after.Rolled)
			if after.Rolled == nil {
				after.Rolled = make(map[string]workload.RolledFor)
			}
			after.Rolled[source.String()] = decision.Record
		})
		s.notef("%d: recorded %s: %s", s.version, source, decision.Record)
	}
}

// optOut removes the annotation, as a person does.
func (s *simulation) optOut() {
	if s.opt.out || s.opt.unseen {
		return
	}
	s.opt.out = true
	s.rewrite(func(after *workload.Workload) { after.OptIn = workload.OptIn{} })
	s.notef("%d: opted out", s.version)
}

// optIn restores the annotation. The actuator sees that later.
func (s *simulation) optIn() {
	if s.opt.out {
		s.opt.out, s.opt.at, s.opt.unseen = false, s.version, true
		s.notef("%d: opted in", s.version)
	}
}

// seeOptIn does what the index does when its reflector shows the opt-in.
func (s *simulation) seeOptIn() {
	if !s.opt.unseen {
		return
	}
	s.opt.unseen = false
	after := *s.w
	after.Version, after.OptIn, after.Written = strconv.Itoa(s.version), s.opt.all, timeOf(s.opt.at)
	if after.LinkAfter(s.w, strconv.Itoa(s.opt.at)) {
		s.opt.asked = append(s.opt.asked, s.sources...)
	}
	s.w = &after
	s.notef("%d: the opt-in at %d is seen", s.version, s.opt.at)
}

// recall does what intake does for a workload that may have come to want other sources.
func (s *simulation) recall() {
	for _, source := range s.opt.asked {
		_, linked := s.w.Link(source.Source)
		waits := s.pending != nil && s.pending.changes[source.Source] != nil
		if waits || !linked || s.decide(source.event, plan.Memory{}).Reason.Action() == plan.Skip {
			continue
		}
		if s.pending == nil {
			s.pending = newPending(s.w.Key(), written)
		}
		s.pending.changes[source.Source] = &pendingChange{change: source.event, event: s.inFlightOf(source.last())}
		s.notef("  recalled %s %s", source, source.event.ID())
	}
	s.opt.asked = nil
}

// forgetLinks makes it unknown since when the workload wants its sources.
func (s *simulation) forgetLinks() {
	for _, source := range s.sources {
		_, linked := s.w.Link(source.Source)
		source.unlinked = source.unlinked || linked || s.opt.out || s.opt.unseen || slices.Contains(s.opt.asked, source)
	}
	after := *s.w
	if s.opt.unseen {
		after.OptIn, after.Written = s.opt.all, timeOf(s.opt.at)
	}
	after.LinkAfter(nil, "")
	s.w, s.opt.asked, s.opt.unseen = &after, nil, false
}
