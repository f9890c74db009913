package openbao

import (
	"context"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// hint is an entry of the audit that says where to look.
type hint struct {
	entry
	change // what the entry means, when the mount is known
	tries  int
	due    time.Time
}

// The delays before a path is read again: where the answer is not yet what the audit says it must be, for a standby may answer
// what is a little old; and where there was no answer.
const (
	minReread = 100 * time.Millisecond
	maxReread = 30 * time.Second
	// maxStale is how often an answer that is not as new as the audit says is not believed.
	maxStale = 6
	// rotationTime is how long before its line in the audit a rotation can have been.
	rotationTime = 10 * time.Second
)

// follow reads the paths that the audit hints at until ctx is done. What comes while it reads is read together.
func (s *store) follow(ctx context.Context) {
	var waiting []hint
	for ctx.Err() == nil {
		next := time.Hour
		for _, h := range waiting {
			next = min(next, h.due.Sub(s.options.Now()))
		}
		incoming := s.hints
		if len(waiting) >= hintsSize {
			incoming = nil
		}
		wake := time.NewTimer(max(next, 0))
		select {
		case <-ctx.Done():
		case h := <-incoming:
			waiting = append(waiting, h)
			for range min(len(incoming), hintsSize-len(waiting)) {
				waiting = append(waiting, <-incoming)
			}
		case <-wake.C:
		}
		wake.Stop()
		waiting = s.readDue(ctx, waiting)
	}
}

// readDue reads what is due, each path once, and gives what must be read again or is not due.
func (s *store) readDue(ctx context.Context, waiting []hint) []hint {
	var later []hint
	var paths []events.StorePath
	now, due := s.options.Now(), map[events.StorePath][]hint{}
	for _, h := range waiting {
		if h.due.After(now) {
			later = append(later, h)
			continue
		}
		there, err := s.place(ctx, &h)
		switch {
		case err != nil:
			later = append(later, h.delayed(now))
		case there:
			if due[h.change.path] == nil {
				paths = append(paths, h.change.path)
			}
			due[h.change.path] = append(due[h.change.path], h)
		}
	}
	again := make([]bool, len(paths))
	inParallel(len(paths), func(i int) { again[i] = !s.readHinted(ctx, paths[i], due[paths[i]]) })
	for i, path := range paths {
		if again[i] {
			for _, h := range due[path] {
				later = append(later, h.delayed(s.options.Now()))
			}
		}
	}
	return later
}

// place finds the mount of a hint, and what the hint means there. It is false where there is nothing to read, and an error
// where that is not known yet.
func (s *store) place(ctx context.Context, h *hint) (bool, error) {
	if h.change.engine != "" {
		return true, nil
	}
	in, err := s.mounts.of(ctx, h.namespace, h.entry.path)
	if err != nil {
		return false, s.hintFailed(ctx, guessMount(h.entry), err)
	}
	c, ok := judge(h.entry, in.path, in.version)
	switch {
	case !ok:
		return false, nil
	case c.complete && c.version == 0:
		// KV v1: there is nothing to read but the value.
		s.observe(ctx, h.entry, c)
		return false, nil
	}
	c.path.Store = s.config.Name
	h.change = c
	return true, nil
}

// readHinted reads a path and observes it, as what the last hint did that explains it. It is false where the path must be
// read again.
func (s *store) readHinted(ctx context.Context, path events.StorePath, hints []hint) bool {
	o, err := s.read(ctx, path)
	if err != nil {
		return s.hintFailed(ctx, path.Mount, err) == nil
	}
	s.status.worked(ctx, s.log, hinted)
	for i := range hints {
		h := &hints[i]
		if !h.satisfied(&o) && h.tries < maxStale {
			return false
		}
		if h.explains(&o) {
			o.tell(h.entry, h.change)
		}
	}
	if o.State == Gone && s.options.Known != nil && !s.knows(path) {
		// It was never there: to delete that succeeds too.
		return true
	}
	o.Received = hints[len(hints)-1].received
	if o.At.IsZero() && o.Operation != "" {
		o.At = hints[len(hints)-1].at
	}
	s.emit(ctx, o)
	return true
}

// hinted is what is told of failures of reading what the audit hints at.
const hinted = "what the audit tells"

// hintFailed tells of an error, and gives it back where the hint is to be tried again.
func (s *store) hintFailed(ctx context.Context, mount string, err error) error {
	if final(err) {
		s.status.failed(ctx, s.log, hinted+" of "+mount, err)
		return nil
	}
	s.status.failed(ctx, s.log, hinted, err)
	return err
}

// delayed is the hint for the next time that it is tried.
func (h hint) delayed(now time.Time) hint {
	h.due = now.Add(min(minReread<<min(h.tries, 16), maxReread))
	h.tries++
	return h
}

// satisfied tells whether what was read is as new as the audit.
func (h *hint) satisfied(o *Observation) bool {
	switch {
	case h.change.version > 0:
		return o.Version >= h.change.version || o.At.After(h.created)
	case h.state == Gone:
		return o.State == Gone || o.At.After(h.at)
	case h.state == Deleted && h.entry.operation == "delete":
		return o.State != Live || o.At.After(h.at)
	case h.change.operation == "rotate":
		return o.State == Gone || !o.At.Before(h.at.Add(-rotationTime))
	}
	// Which versions were undeleted or destroyed is not told.
	return true
}

// explains tells whether what the audit tells made the state that was read.
func (h *hint) explains(o *Observation) bool {
	if h.change.version > 0 {
		return o.Version == h.change.version && o.State == Live
	}
	return h.state == 0 || o.State == h.state
}

// inParallel calls f for 0 to n-1, a few at a time, and waits.
func inParallel(n int, f func(i int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range min(n, concurrency) {
		group.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}
