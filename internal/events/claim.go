package events

import (
	"errors"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
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

// ClaimSubject returns the subject of the claim of a cluster: keyturn.v1.<cluster>.cluster._.identity.
func ClaimSubject(cluster string) string {
	return Address{Cluster: cluster, Kind: KindCluster, Name: claimName}.subject()
}

func (c Claim) subject() string { return ClaimSubject(c.Cluster) }

// id returns the event's id. It includes Replaces, so that a cluster can take a name back.
func (c Claim) id() string {
	if c.Replaces == "" {
		return c.UID + "/claimed"
	}
	return c.UID + "/claimed/" + c.Replaces
}

// event encodes the claim as a CloudEvent.
func (c Claim) event() (event.Event, error) { return encode(c) }

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
	if err := v.matches(c); err != nil {
		return Claim{}, err
	}
	return c, nil
}

func (c Claim) envelope() envelope {
	return envelope{
		cluster: c.Cluster, component: watcher, kind: KindCluster, verb: VerbClaimed, id: c.id(),
		selfLink: "/api/v1/namespaces/kube-system", uid: c.UID, time: c.Time,
	}
}

func (c Claim) validate() error {
	if c.Replaces != "" && !isUID(c.Replaces) {
		return errors.New("the replaced uid is not a Kubernetes UID")
	}
	return nil
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
