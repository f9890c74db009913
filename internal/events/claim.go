package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go/jetstream"
)

// Claim is the event by which a cluster claims its configured name. The watcher publishes it, and renews it once a week. Both programs
// compare it with their own cluster, to detect two clusters that were configured with the same name.
type Claim struct {
	// Cluster is the configured name.
	Cluster string `json:"-"`
	// UID is the UID of the namespace kube-system, which by convention identifies a cluster.
	UID string `json:"-"`
	// Time is when the name was last claimed.
	Time time.Time `json:"-"`
	// Replaces is the UID of the cluster that had the name before. It is empty if there was none.
	Replaces string `json:"replaces,omitempty"`
}

// claimName is the name token of the subject. It is fixed, because a cluster has one claim.
const claimName = "identity"

// claimInterval is the age at which a claim is renewed. The stream of a hub drops a claim after 30 days.
const claimInterval = 7 * 24 * time.Hour

// ClaimSubject returns the subject of the claim of a cluster: keyturn.v1.<cluster>.cluster._.identity.
func ClaimSubject(cluster string) string {
	return Address{Cluster: cluster, Kind: KindCluster, Name: claimName}.subject()
}

// id returns the event's id. It includes Replaces, so that a cluster can take a name back.
func (c Claim) id() string {
	if c.Replaces == "" {
		return c.UID + "/claimed"
	}
	return c.UID + "/claimed/" + c.Replaces
}

// event encodes the claim as a CloudEvent.
func (c Claim) event() (event.Event, error) {
	if err := c.validate(); err != nil {
		return event.Event{}, &RejectError{Reason: ReasonMalformed, Err: err}
	}
	return c.envelope().event(c)
}

// parseClaim decodes a claim. It returns a RejectError for an event that Claim.event cannot have made.
func parseClaim(e event.Event) (Claim, error) {
	var c Claim
	v, err := parseEnvelope(e, watcher, &c)
	if err != nil {
		return Claim{}, err
	}
	if v.kind != KindCluster || v.verb != VerbClaimed {
		return Claim{}, rejectf(ReasonUnknownType, "the event is of kind %s, want a claim", v.kind)
	}
	c.Cluster, c.UID, c.Time = v.cluster, v.uid, v.time
	if err := c.validate(); err != nil {
		return Claim{}, &RejectError{Reason: ReasonMalformed, Err: err}
	}
	return c, v.matches(c.envelope())
}

func (c Claim) envelope() envelope {
	return envelope{
		cluster: c.Cluster, component: watcher, kind: KindCluster, verb: VerbClaimed, id: c.id(),
		selfLink: "/api/v1/namespaces/kube-system", uid: c.UID, time: c.Time,
	}
}

func (c Claim) validate() error {
	switch {
	case !isLabel(c.Cluster):
		return errors.New("the cluster is not a DNS label")
	case !isUID(c.UID):
		return errors.New("the uid is not a Kubernetes UID")
	case c.Replaces != "" && !isUID(c.Replaces):
		return errors.New("the replaced uid is not a Kubernetes UID")
	case c.Time.IsZero():
		return errors.New("the time is missing")
	}
	return nil
}

// Claim returns the stored claim. It returns a RejectError if the event is not a claim, or is about the cluster of another subject.
func (s Stored) Claim() (Claim, error) {
	if s.Err != nil {
		return Claim{}, s.Err
	}
	claim, err := parseClaim(s.Event)
	if err != nil {
		return Claim{}, err
	}
	if ClaimSubject(claim.Cluster) != s.Subject {
		return Claim{}, rejectf(ReasonSubjectMismatch, "the event on %s is about another cluster", s.Subject)
	}
	return claim, nil
}

// Claim claims the bus's cluster name for the cluster whose namespace kube-system has the given UID. If another cluster has
// claimed the name, Claim takes it over if that cluster's UID is replaces. Otherwise, it returns an error that wraps ErrClaimed.
// It renews the cluster's own claim once that is older than claimInterval.
func (b *Bus) Claim(ctx context.Context, uid, replaces string) error {
	for {
		stored, found, err := b.claimed(ctx)
		if err != nil {
			return err
		}
		mine := Claim{Cluster: b.cluster, UID: uid, Time: b.now(), Replaces: found.predecessor(uid, replaces)}
		// A claim from the future was made with a wrong clock.
		if found.UID == uid && mine.Time.Sub(found.Time).Abs() < claimInterval {
			return nil
		}
		if err := b.contest(found, uid, replaces); err != nil {
			return err
		}
		if err := b.publishClaim(ctx, mine, stored.Seq); !errors.Is(err, ErrConflict) {
			return err
		}
		// Another watcher was faster. Look whether its claim is for this cluster or for another one.
	}
}

// CheckClaim is Claim without claiming: it returns nil if the name is unclaimed.
func (b *Bus) CheckClaim(ctx context.Context, uid, replaces string) error {
	_, found, err := b.claimed(ctx)
	if err != nil {
		return err
	}
	return b.contest(found, uid, replaces)
}

// claimed returns the current claim. It is empty if there is none, or if the stored event is unreadable.
func (b *Bus) claimed(ctx context.Context) (Stored, Claim, error) {
	stored, err := b.Last(ctx, ClaimSubject(b.cluster))
	if errors.Is(err, ErrNotFound) {
		return Stored{}, Claim{}, nil
	}
	if err != nil {
		return Stored{}, Claim{}, err
	}
	claim, err := stored.Claim()
	if err != nil {
		b.logger.WarnContext(ctx, "cluster name claim is unreadable", "subject", stored.Subject, "err", err)
	}
	return stored, claim, nil
}

// predecessor returns the UID of the cluster that had the name before the cluster with the given UID, where c is the current claim. A new stream
// has no claim. Then predecessor returns replaces, unless that is the cluster's own UID, as if all clusters were configured with it.
func (c Claim) predecessor(uid, replaces string) string {
	switch {
	case c.UID == uid:
		return c.Replaces
	case c.UID == "" && replaces != uid:
		return replaces
	}
	return c.UID
}

// contest returns nil if, given the current claim, the name is free to take or already belongs to the cluster.
func (b *Bus) contest(found Claim, uid, replaces string) error {
	if found.UID == "" || found.UID == uid || found.UID == replaces {
		return nil
	}
	return fmt.Errorf("%w: %q belongs to the cluster with UID %s, which claimed it last at %s, this cluster has UID %s; "+
		"set another --cluster, or --replaces-cluster=%s if this cluster replaces that one",
		ErrClaimed, b.cluster, found.UID, found.Time.UTC().Format(time.RFC3339), uid, found.UID)
}

func (b *Bus) publishClaim(ctx context.Context, claim Claim, expected uint64) error {
	e, err := claim.event()
	if err != nil {
		return err
	}
	msg, err := ToMsg(e, ClaimSubject(b.cluster))
	if err != nil {
		return err
	}
	// Two clusters may take the name from each other within the dedupe window, so the message id includes the sequence that it supersedes.
	id := numberedID(b.messageID(e.ID()), expected)
	ack, err := b.publish(ctx, msg, id, "", jetstream.WithExpectLastSequencePerSubject(expected))
	for err == nil && ack.Duplicate && expected == 0 {
		if _, readErr := b.Last(ctx, msg.Subject); !errors.Is(readErr, ErrNotFound) {
			break
		}
		// The stream remembers this id but has lost the claim: see PublishChange.
		ack, err = b.publish(ctx, msg, numberedID(id, ack.Sequence), "", jetstream.WithExpectLastSequencePerSubject(expected))
	}
	switch {
	case isConflict(err), err == nil && ack.Duplicate:
		return fmt.Errorf("publishing on %s: %w", msg.Subject, ErrConflict)
	case err != nil:
		return fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return nil
}
