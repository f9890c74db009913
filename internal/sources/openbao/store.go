package openbao

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// The bounds of what waits for each store.
const (
	// spoolSize is how many entries of the audit wait. One has some hundred bytes, and never more than some thousand.
	spoolSize = 4096
	// hintsSize is how many paths wait to be read.
	hintsSize = 1024
	// maxLearned is how many mounts are remembered of a store that cannot be asked.
	maxLearned = 1024
)

// store is what is done for one store. What the receivers have of it is take, miss and refuse.
type store struct {
	config  *storeConfig
	client  *client // nil where the store cannot be asked
	mounts  *mounts // nil too
	options *Options
	log     *slog.Logger
	metrics *metrics
	status  status

	spool  chan entry
	hints  chan hint
	jitter func(time.Duration) time.Duration
	// soon asks for a poll.
	soon chan struct{}
	// learned are the mounts that were seen to be KV v2. It belongs to the worker.
	learned map[mountName]bool
	sink    Sink
}

type mountName struct{ namespace, mount string }

func newStore(config *storeConfig, o *Options, m *metrics) (*store, error) {
	s := &store{
		config: config, options: o, metrics: m,
		log:   o.Logger.With("store", config.Name),
		spool: make(chan entry, spoolSize), hints: make(chan hint, hintsSize), soon: make(chan struct{}, 1),
		learned: map[mountName]bool{}, jitter: jittered,
	}
	if config.Auth == (authConfig{}) {
		return s, nil
	}
	var err error
	if s.client, err = newClient(config, o.Transport, o.Now, s.log); err != nil {
		return nil, err
	}
	s.mounts = &mounts{client: s.client, known: map[string]namespaceMounts{}}
	return s, nil
}

// polled tells whether what the audit misses is found by polling.
func (s *store) polled() bool { return s.client != nil && s.config.Poll.enabled() }

// take takes a line of the store's audit. It neither blocks nor keeps the line. vouched says that its sender is authenticated.
func (s *store) take(ctx context.Context, line []byte, vouched bool) {
	e, result := decodeLine(line)
	if result != malformed {
		s.status.heard(s.options.Now())
	}
	if result == used {
		e.received, e.vouched = s.options.Now(), vouched
		select {
		case s.spool <- e:
		default:
			result = dropped
			s.pollSoon()
		}
	}
	s.metrics.line(ctx, s.config.Name, result)
}

// miss is told that something of the audit could not be taken.
func (s *store) miss(ctx context.Context, result verdict) {
	s.metrics.line(ctx, s.config.Name, result)
	s.pollSoon()
}

// skip is told of a line that is too long to be taken, with its beginning. It tells whether something may be missed by that.
func (s *store) skip(ctx context.Context, head []byte) bool {
	if promising(head) {
		s.miss(ctx, dropped)
		return true
	}
	s.metrics.line(ctx, s.config.Name, ignored)
	return false
}

// refuse is told that a sender may not send.
func (s *store) refuse(ctx context.Context) { s.metrics.line(ctx, s.config.Name, refused) }

func (s *store) pollSoon() {
	select {
	case s.soon <- struct{}{}:
	default:
	}
}

// run observes until ctx is done. Then it observes what is spooled already, as far as that needs no asking.
func (s *store) run(ctx context.Context, sink Sink) {
	s.sink = sink
	var group sync.WaitGroup
	group.Go(func() { s.work(ctx) })
	if s.client != nil {
		group.Go(func() { s.client.session.run(ctx) })
		group.Go(func() { s.follow(ctx) })
	}
	if s.polled() {
		group.Go(func() { s.poll(ctx) })
	}
	group.Wait()
	if s.client != nil {
		s.client.close()
	}
}

// work judges the entries in their order.
func (s *store) work(ctx context.Context) {
	for {
		select {
		case e := <-s.spool:
			s.process(ctx, e)
		case <-ctx.Done():
			for {
				select {
				case e := <-s.spool:
					s.process(ctx, e)
				default:
					return
				}
			}
		}
	}
}

// process observes what an entry tells by itself, and gives the reader the others.
func (s *store) process(ctx context.Context, e entry) {
	if s.client != nil {
		// What a version tells is complete, whatever the store would say of the mount.
		if c, ok := judge(e, e.mount, kvUnknown); ok && e.vouched && e.mount != "" && c.version > 0 {
			s.observe(ctx, e, c)
			return
		}
		select {
		case s.hints <- hint{entry: e}:
		default:
			s.miss(ctx, dropped)
		}
		return
	}
	if e.mount == "" {
		e.mount = guessMount(e)
	}
	name, kv := mountName{e.namespace, e.mount}, kvUnknown
	if e.version > 0 && len(s.learned) < maxLearned {
		s.learned[name] = true
	}
	if s.learned[name] {
		kv = kvV2
	}
	if c, ok := judge(e, e.mount, kv); ok && c.state != 0 {
		s.observe(ctx, e, c)
	}
}

// observe gives the sink what an entry says by itself.
func (s *store) observe(ctx context.Context, e entry, c change) {
	o := Observation{
		Path: c.path, Servers: s.config.servers, Engine: c.engine, Version: c.version, State: c.state,
		At: e.at, Received: e.received, Request: e.request,
	}
	o.Path.Store = s.config.Name
	if c.version > 0 {
		o.Request = ""
		// Vault makes an HMAC of the time, and then it is about when the line was made.
		if !e.created.IsZero() {
			o.At = e.created
		}
	}
	o.tell(e, c)
	s.emit(ctx, o)
}

// tell adds who did what.
func (o *Observation) tell(e entry, c change) {
	o.Operation, o.By, o.Trace = c.operation, e.by, e.trace
}

// The delays between two offers to a sink that has no room.
const (
	minOffer = 10 * time.Millisecond
	maxOffer = time.Second
)

// emit offers an observation to the sink until it is taken. When ctx is done it is offered once.
func (s *store) emit(ctx context.Context, o Observation) {
	if _, err := o.Path.Source().StorePath(); err != nil {
		s.status.failed(ctx, s.log, "paths that events cannot name", err)
		return
	}
	wait := minOffer
	for !s.sink(o) && pause(ctx, wait) {
		wait = min(2*wait, maxOffer)
	}
}

// ready is nil when everything that is polled was read once.
func (s *store) ready() error {
	if !s.polled() {
		return nil
	}
	return s.status.ready()
}

// known are the paths in a mount that somebody knows of.
func (s *store) known(namespace, mount string) []string {
	if s.options.Known == nil {
		return nil
	}
	return s.options.Known(s.config.Name, namespace, mount)
}

// knows tells whether the path is known to somebody.
func (s *store) knows(path events.StorePath) bool {
	return slices.Contains(s.known(path.Namespace, path.Mount), path.Path)
}

// referenced are the paths of this store that somebody reads.
func (s *store) referenced(ctx context.Context) ([]events.StorePath, error) {
	if !s.config.Poll.Referenced {
		return nil, nil
	}
	references, err := s.options.Referenced(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing what is referenced: %w", err)
	}
	var paths []events.StorePath
	for _, reference := range references {
		if slices.Contains(s.config.servers, reference.Server) {
			reference.Path.Store = s.config.Name
			paths = append(paths, reference.Path)
		}
	}
	return paths, nil
}
