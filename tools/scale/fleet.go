package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
)

// collectPatience is how long FLEET may take to collect what the clusters have published.
const collectPatience = 10 * time.Minute

// fleet compares the stream FLEET with what the clusters have published.
type fleet struct {
	reader jetstream.JetStream
	// next is the sequence from which to read the stream the next time, and stored is how many events it had before that.
	next   uint64
	stored int
	// clusters has the clusters that have joined, by name, and versions the last version in FLEET of each source, or 0 if
	// there is none.
	clusters map[string]*cluster
	versions map[string][]int
}

func newFleet(reader jetstream.JetStream) *fleet {
	return &fleet{reader: reader, next: 1, clusters: make(map[string]*cluster), versions: make(map[string][]int)}
}

func (f *fleet) add(c *cluster) {
	f.clusters[c.name], f.versions[c.name] = c, make([]int, len(c.versions))
}

// sources reports whether FLEET already collects a stream.
func (f *fleet) sources(stream string) bool {
	return f.clusters[strings.TrimPrefix(stream, "FLEET-")] != nil
}

// collected waits until FLEET has the last event of each cluster, and returns the time of that. The events of a cluster keep their order.
func (f *fleet) collected(ctx context.Context) (time.Time, error) {
	var at time.Time
	stream, err := f.stream(ctx)
	if err != nil {
		return at, err
	}
	ctx, cancel := context.WithTimeout(ctx, collectPatience)
	defer cancel()
	for _, c := range f.clusters {
		last := c.last()
		want := last.Cluster + "/" + last.ID()
		var found string
		err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			msg, err := stream.GetLastMsgForSubject(ctx, events.Subject(c.name, last.Source))
			if err != nil {
				return false, ignoreAbsence(err)
			}
			if found = msg.Header.Get(nats.MsgIdHdr); found == want && msg.Time.After(at) {
				at = msg.Time
			}
			return found == want, nil
		})
		if err != nil {
			return at, fmt.Errorf("FLEET has %q, and not the last event of %s, %q: %w", found, c.name, want, err)
		}
	}
	return at, nil
}

// ignoreAbsence returns the error, or nil if it is a temporary one.
func ignoreAbsence(err error) error {
	if errors.Is(err, jetstream.ErrMsgNotFound) || bus.IsSilence(err) {
		return nil
	}
	return err
}

func (f *fleet) stream(ctx context.Context) (jetstream.Stream, error) {
	var stream jetstream.Stream
	err := untilAnswered(ctx, func(ctx context.Context) (err error) {
		stream, err = f.reader.Stream(ctx, "FLEET")
		return err
	})
	return stream, err
}

// verify reads what FLEET has received since the last call, once everything is collected. The error says what is lost or doubled. Of several
// events of a source in quick succession, FLEET may have only the last one, because CHANGES keeps no others.
func (f *fleet) verify(ctx context.Context) error {
	stream, err := f.stream(ctx)
	if err != nil {
		return err
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		HeadersOnly: true, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: f.next,
	})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for left := consumer.CachedInfo().NumPending; left > 0; left-- {
		msg, err := messages.Next(jetstream.NextMaxWait(time.Minute))
		if err != nil {
			return fmt.Errorf("reading FLEET: %w", err)
		}
		if err := f.note(msg.Headers().Get(nats.MsgIdHdr)); err != nil {
			return err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		f.next = meta.Sequence.Stream + 1
	}
	return f.complete()
}

// note records the id of the next message of FLEET. It returns an error if the event is out of order or a duplicate.
func (f *fleet) note(id string) error {
	name, _, _ := strings.Cut(id, "/")
	c := f.clusters[name]
	if c == nil {
		return fmt.Errorf("FLEET has %q, which is of no cluster", id)
	}
	source, version, err := c.parseID(id)
	if err != nil {
		return fmt.Errorf("FLEET has %q: %w", id, err)
	}
	had := &f.versions[name][source]
	if version <= *had {
		return fmt.Errorf("FLEET has %q after version %d of the source: it is doubled", id, *had)
	}
	*had = version
	f.stored++
	return nil
}

// complete returns an error if FLEET does not have the last event of every source.
func (f *fleet) complete() error {
	var lost int
	for name, c := range f.clusters {
		for i, version := range c.versions {
			if f.versions[name][i] != version {
				lost++
			}
		}
	}
	if lost > 0 {
		return fmt.Errorf("FLEET lacks the last event of %d sources", lost)
	}
	return nil
}
