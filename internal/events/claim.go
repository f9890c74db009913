package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go/jetstream"
)

// Claim says which cluster has a name: the one whose namespace kube-system has the UID. The watcher publishes it once, and
// both programs of a cluster compare it with their own when they start, so that two clusters that were given one name are
// not taken for one.
type Claim struct {
	// Cluster is the configured name.
	Cluster string `json:"-"`
	// UID is that of the namespace kube-system, which is what Kubernetes has for the identity of a cluster.
	UID string `json:"-"`
	// Time is when the name was claimed.
	Time time.Time `json:"-"`
	// Replaces is the UID of the cluster that had the name before. Empty where none had.
	Replaces string `json:"replaces,omitempty"`
}

// claimName is the name token of the subject. There is one claim for a cluster.
const claimName = "identity"

// ClaimSubject is where the claim to the name of a cluster is: keyturn.v1.<cluster>.cluster._.identity.
func ClaimSubject(cluster string) string {
	return Address{Cluster: cluster, Kind: KindCluster, Name: claimName}.Subject()
}

// ID is the id of the event. A cluster that takes a name back claims it anew.
func (c Claim) ID() string {
	if c.Replaces == "" {
		return c.UID + "/claimed"
	}
	return c.UID + "/claimed/" + c.Replaces
}

// Event makes the CloudEvent of the claim.
func (c Claim) Event() (event.Event, error) {
	if err := c.validate(); err != nil {
		return event.Event{}, &RejectError{Reason: ReasonMalformed, Err: err}
	}
	return c.envelope().event(c)
}

// ParseClaim reads the claim from a CloudEvent of the watcher. It refuses others with a RejectError.
func ParseClaim(e event.Event) (Claim, error) {
	var c Claim
	v, err := parseEnvelope(e, watcher, &c)
	if err != nil {
		return Claim{}, err
	}
	if v.kind != KindCluster {
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
		cluster: c.Cluster, component: watcher, kind: KindCluster, verb: VerbClaimed, id: c.ID(),
		selfLink: "/api/v1/namespaces/kube-system", uid: c.UID, time: c.Time,
	}
}

func (c Claim) validate() error {
	switch {
	case !isLabel(c.Cluster):
		return errors.New("the cluster is not a DNS label")
	case !isUID(c.UID):
		return errors.New("the uid is not one of Kubernetes")
	case c.Replaces != "" && !isUID(c.Replaces):
		return errors.New("the uid that is replaced is not one of Kubernetes")
	case c.Time.IsZero():
		return errors.New("the time is missing")
	}
	return nil
}

// Claim gives the claim that is stored, or a RejectError where it is not one, or not one of this subject.
func (s Stored) Claim() (Claim, error) {
	if s.Err != nil {
		return Claim{}, s.Err
	}
	claim, err := ParseClaim(s.Event)
	if err != nil {
		return Claim{}, err
	}
	if ClaimSubject(claim.Cluster) != s.Subject {
		return Claim{}, rejectf(ReasonSubjectMismatch, "the event on %s is about another cluster", s.Subject)
	}
	return claim, nil
}

// Claim claims the name of the cluster for the one whose kube-system has the UID, unless it has it already. Where another
// has it, that is taken over from the cluster with the UID replaces, and from no other: the error wraps ErrClaimed then.
func (b *Bus) Claim(ctx context.Context, uid, replaces string) error {
	for {
		stored, found, err := b.claimed(ctx)
		if err != nil {
			return err
		}
		if found.UID == uid {
			return nil
		}
		if err := b.contest(found, uid, replaces); err != nil {
			return err
		}
		mine := Claim{Cluster: b.cluster, UID: uid, Time: b.now(), Replaces: found.UID}
		if err := b.publishClaim(ctx, mine, stored.Seq); !errors.Is(err, ErrConflict) {
			return err
		}
		// Another was faster: with the claim of this cluster, or with its own.
	}
}

// CheckClaim is Claim without claiming. A name that nobody has claimed yet is as good as one's own.
func (b *Bus) CheckClaim(ctx context.Context, uid, replaces string) error {
	_, found, err := b.claimed(ctx)
	if err != nil || found.UID == "" || found.UID == uid {
		return err
	}
	return b.contest(found, uid, replaces)
}

// claimed reads the claim to the name. It is empty where there is none, or none that can be read.
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
		b.logger.WarnContext(ctx, "the claim to the name of the cluster cannot be read", "subject", stored.Subject, "err", err)
	}
	return stored, claim, nil
}

// contest is nil where the name may be taken over.
func (b *Bus) contest(found Claim, uid, replaces string) error {
	if found.UID == "" || found.UID == replaces {
		return nil
	}
	return fmt.Errorf("%w: cluster %q is the one with UID %s since %s, and this one has UID %s; give this one another name (--cluster), or, where it has replaced that one, say so with --replaces-cluster=%s",
		ErrClaimed, b.cluster, found.UID, found.Time.UTC().Format(time.RFC3339), uid, found.UID)
}

func (b *Bus) publishClaim(ctx context.Context, claim Claim, expected uint64) error {
	e, err := claim.Event()
	if err != nil {
		return err
	}
	msg, err := ToMsg(e, ClaimSubject(b.cluster))
	if err != nil {
		return err
	}
	// Two clusters can take a name from each other within a minute, so what is superseded is part of the message's id.
	id := b.messageID(e.ID()) + "@" + strconv.FormatUint(expected, 10)
	ack, err := b.publish(ctx, msg, id, jetstream.WithExpectLastSequencePerSubject(expected))
	switch {
	case isConflict(err), err == nil && ack.Duplicate:
		return fmt.Errorf("publishing on %s: %w", msg.Subject, ErrConflict)
	case err != nil:
		return fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return nil
}
