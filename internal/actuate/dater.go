package actuate

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// datingTimeout bounds how long a workload waits for the times of a source's changes, which only spare it a roll for nothing.
	datingTimeout = 5 * time.Second
	// datingReads is how many sources are read at the same time.
	datingReads = 4
)

// dater finds in the history when what a source has now was written. A read does not block the loop: the workloads that need it wait in
// the debounce window, and those that need the same source share one.
type dater struct {
	// written returns, by the resourceVersion of each change in an event, a time before which it was written.
	written func(context.Context, events.Change) (map[string]time.Time, error)
	log     *slog.Logger
	// answers has the result of each read.
	answers chan dates

	// asked are the workloads that wait, by source. It belongs to the loop.
	asked   map[events.Source]map[workload.Key]struct{}
	reads   chan struct{}
	running sync.WaitGroup
}

// dates says when the changes of a source were written.
type dates struct {
	source  events.Source
	written map[string]time.Time
}

func newDater(written func(context.Context, events.Change) (map[string]time.Time, error), log *slog.Logger) *dater {
	return &dater{
		written: written, log: log, answers: make(chan dates),
		asked: make(map[events.Source]map[workload.Key]struct{}), reads: make(chan struct{}, datingReads),
	}
}

// ask has the dates of a source read for a workload.
func (d *dater) ask(ctx context.Context, key workload.Key, change events.Change) {
	if waiting := d.asked[change.Source]; waiting != nil {
		waiting[key] = struct{}{}
		return
	}
	d.asked[change.Source] = map[workload.Key]struct{}{key: {}}
	d.running.Go(func() {
		select {
		case d.answers <- dates{change.Source, d.read(ctx, change)}:
		case <-ctx.Done():
		}
	})
}

// read never returns nil: what is not known must not be asked again.
func (d *dater) read(ctx context.Context, change events.Change) map[string]time.Time {
	bounded, cancel := context.WithTimeout(ctx, datingTimeout)
	defer cancel()
	select {
	case d.reads <- struct{}{}:
		defer func() { <-d.reads }()
	case <-bounded.Done():
	}
	written, err := d.written(bounded, change)
	if err != nil && ctx.Err() == nil {
		d.log.WarnContext(ctx, "history not readable; a workload may be rolled for a change that it has", "source", change.Source.String(),
			"namespace", change.Source.Namespace, "err", err)
	}
	if written == nil {
		written = make(map[string]time.Time)
	}
	return written
}

// waited returns the workloads that waited for an answer.
func (d *dater) waited(answer dates) map[workload.Key]struct{} {
	keys := d.asked[answer.source]
	delete(d.asked, answer.source)
	return keys
}
