package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go/jetstream"
)

// Watched is the event by which a watcher says that every source in its scope that existed at a certain time is on the stream. If the
// next watcher finds a source in that scope that is not on the stream, it knows that the source was created later, while nobody watched.
type Watched struct {
	// Cluster is the configured name.
	Cluster string `json:"-"`
	// Time is until when the sources were watched, by the watcher's clock.
	Time time.Time `json:"-"`
	// Scope says which sources were watched.
	Scope
}

// watchedPrefix begins the name token of the subject. A digest of the scope follows, because a cluster may have watchers with different scopes.
const watchedPrefix = "watched-"

func (w Watched) name() string { return watchedPrefix + w.digest() }

// subject returns keyturn.v1.<cluster>.cluster._.watched-<digest of the scope>.
func (w Watched) subject() string {
	return Address{Cluster: w.Cluster, Kind: KindCluster, Name: w.name()}.subject()
}

// event encodes the Watched as a CloudEvent.
func (w Watched) event() (event.Event, error) {
	if err := w.validate(); err != nil {
		return event.Event{}, &RejectError{Reason: ReasonMalformed, Err: err}
	}
	return w.envelope().event(w)
}

func (w Watched) envelope() envelope {
	return envelope{
		cluster: w.Cluster, component: watcher, kind: KindCluster, verb: VerbWatched,
		id:       w.name() + "/" + strconv.FormatInt(w.Time.UnixNano(), 10),
		selfLink: "/api/v1", uid: w.name(), time: w.Time,
	}
}

func (w Watched) validate() error {
	switch {
	case !isLabel(w.Cluster):
		return errors.New("the cluster is not a DNS label")
	case w.Time.IsZero():
		return errors.New("the time is missing")
	}
	return w.Scope.validate()
}

// parseWatched decodes a Watched. It returns a RejectError for an event that Watched.event cannot have made.
func parseWatched(e event.Event) (Watched, error) {
	var w Watched
	v, err := parseEnvelope(e, watcher, &w)
	if err != nil {
		return Watched{}, err
	}
	if v.kind != KindCluster || v.verb != VerbWatched {
		return Watched{}, rejectf(ReasonUnknownType, "the event does not say what is watched")
	}
	w.Cluster, w.Time = v.cluster, v.time
	if err := w.validate(); err != nil {
		return Watched{}, &RejectError{Reason: ReasonMalformed, Err: err}
	}
	if v.uid != w.name() {
		return Watched{}, rejectf(ReasonMalformed, "the partitionkey does not match the scope")
	}
	return w, v.matches(w.envelope())
}

// PublishWatched publishes a Watched: every source in the scope that existed at the given time is on the stream. Because the event is a
// state and not a change, it is on StreamChanges only, where the next one supersedes it, or it expires after 30 days.
func (b *Bus) PublishWatched(ctx context.Context, scope Scope, at time.Time) error {
	w := Watched{Cluster: b.cluster, Time: at.UTC(), Scope: scope}
	e, err := w.event()
	if err != nil {
		return err
	}
	msg, err := ToMsg(e, w.subject())
	if err != nil {
		return err
	}
	if _, err := b.store(ctx, StreamChanges, msg.Subject, msg, b.messageID(e.ID()), jetstream.WithMsgTTL(retention)); err != nil {
		return fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return nil
}

// Watched returns the last Watched of each scope in the bus's cluster. It leaves out events that it cannot read.
func (b *Bus) Watched(ctx context.Context) ([]Watched, error) {
	var list []Watched
	err := b.State(ctx, []string{KindFilter(b.cluster, KindCluster)}, func(stored Stored) error {
		address, err := ParseSubject(stored.Subject)
		if err != nil || stored.Err != nil || !strings.HasPrefix(address.Name, watchedPrefix) {
			return nil //nolint:nilerr // it is left out
		}
		w, err := parseWatched(stored.Event)
		if err == nil && w.subject() == stored.Subject {
			list = append(list, w)
			return nil
		}
		b.logger.WarnContext(ctx, "cannot read until when sources were watched", "subject", stored.Subject, "err", err)
		return nil
	})
	return list, err
}
