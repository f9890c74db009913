package actuate

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// state contains the last change of each source. A Follower fills it even while another actuator leads. It is safe for concurrent use.
type state struct {
	*events.LastChanges
	now func() time.Time
	// dirty collects the news after the stream was first read.
	dirty *dirtySet
	// earlier contains the first event of each source that a later one replaced before the stream was first read.
	earlier sync.Map
	// base contains the last event of each source when the stream was first read. It is nil until then. overtaken has the sources of which a later
	// event came meanwhile, and when the stream stored the base.
	base      map[events.Source]plan.Base
	overtaken map[events.Source]time.Time
	// gapFrom is plan.Memory.GapFrom. It is set before this actuator leads.
	gapFrom time.Time
	met     sync.Map // contains a plan.Base, the version at first sight, of each workload whose kind was not served at first
	// complete is closed when the stream has been read for the first time.
	complete chan struct{}
	// unreadable has an element after an event that cannot be read.
	unreadable chan struct{}
}

func newState(o Options, dirty *dirtySet) *state {
	origins := events.Origins{Cluster: o.Cluster, StoresFrom: o.StoreClusters()}
	return &state{
		LastChanges: events.NewLastChanges(origins), now: o.Now, dirty: dirty, complete: make(chan struct{}), unreadable: make(chan struct{}, 1),
	}
}

// Put implements bus.Taker.
func (s *state) Put(at events.Address, c *events.LastChange) {
	before, isNew := s.LastChanges.Put(at, c)
	if c.Verb() == "" {
		select {
		case s.unreadable <- struct{}{}:
		default: // signaled already
		}
	}
	if !isNew {
		return
	}
	select {
	case <-s.complete:
		s.dirty.tell(at.Source(), before, cameAt(c.Time(), s.now()))
	default: // A new leader begins with the whole state.
		if before != nil {
			s.earlier.LoadOrStore(at.Source(), before)
		}
	}
}

// Complete implements bus.Taker. Events that arrived while the stream was first read are news.
func (s *state) Complete(last uint64) {
	s.Forget(s.now())
	if s.base != nil {
		return
	}
	s.base, s.overtaken = make(map[events.Source]plan.Base), make(map[events.Source]time.Time)
	s.All(func(source events.Source, c *events.LastChange) {
		was := c
		if c.Seq > last {
			s.dirty.tell(source, nil, cameAt(c.Time(), s.now()))
			first, _ := s.earlier.Load(source)
			if was, _ = first.(*events.LastChange); was == nil || was.Seq > last {
				return
			}
			s.overtaken[source] = was.StoredAt()
		}
		s.base[source] = plan.Base{Version: was.ResourceVersion, Deleted: was.Verb() == events.VerbDeleted}
	})
	s.earlier.Clear()
	close(s.complete)
}

// baseOf returns plan.Memory.Base for a workload and the last event of a source. It is nil if the stream was not read yet.
func (s *state) baseOf(key workload.Key, source events.Source) *plan.Base {
	if s.base == nil {
		return nil
	}
	base := s.base[source]
	if s.overtaken[source].After(s.gapFrom) {
		base = plan.Base{} // It may be a change that nobody has decided, and nobody can decide it any more.
	}
	if met, isMet := s.met.Load(key); isMet && source.Kind != events.KindOpenBao {
		base, _ = met.(plan.Base)
	}
	return &base
}

// wait blocks until the stream has been read, and returns false if the context ended first.
func (s *state) wait(ctx context.Context) bool {
	select {
	case <-s.complete:
		return true
	case <-ctx.Done():
		return false
	}
}

// concerning returns the sources that may concern a workload. Those that it does not name itself have an event.
func (s *state) concerning(w *workload.Workload) []events.Source {
	if w.OptIn.Empty() {
		return nil
	}
	list := w.Sources()
	for _, kind := range events.SourceKinds() {
		// A workload names a secret in a store without naming the store.
		inStores := kind == events.KindOpenBao && slices.ContainsFunc(list, func(named events.Source) bool { return named.Kind == kind })
		if !inStores && !w.OptIn.HasPatterns(kind) {
			continue
		}
		s.Each(kind, w.ID.Namespace, func(name string, c *events.LastChange) {
			source := workload.SourceNamed(kind, w.ID.Namespace, name)
			if w.OptIn.Wants(source, w.Reference(source), c.Match).Wanted() {
				list = append(list, source)
			}
		})
	}
	return list
}
