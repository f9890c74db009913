package events

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Claim is the event by which a cluster claims its configured name. The watcher publishes it, and renews it once a week. Both programs
// compare it with their own cluster, to detect two clusters that were configured with the same name.
type Claim struct {
	Cluster  string    `json:"-"`                  // the configured name
	UID      string    `json:"-"`                  // the UID of the namespace kube-system, which by convention identifies a cluster
	Time     time.Time `json:"-"`                  // when the name was last claimed
	Replaces string    `json:"replaces,omitempty"` // the UID of the cluster that had the name before; empty if there was none
}

// ClaimName is the name token of the subject. It is fixed, because a cluster has one claim.
const ClaimName = "identity"

// ClaimSubject returns the subject of the claim of a cluster: keyturn.v1.<cluster>.cluster._.identity.
func ClaimSubject(cluster string) string {
	return Address{Cluster: cluster, Kind: KindCluster, Name: ClaimName}.Subject()
}

// Subject returns the subject on StreamChanges.
func (c Claim) Subject() string { return ClaimSubject(c.Cluster) }

// id returns the event's id. It includes Replaces, so that a cluster can take a name back.
func (c Claim) id() string {
	if c.Replaces == "" {
		return c.UID + "/claimed"
	}
	return c.UID + "/claimed/" + c.Replaces
}

// Encode returns the claim as a stream stores it.
func (c Claim) Encode() (Stored, error) { return encode(c) }

// Claim returns the stored claim, with the errors of Change.
func (s Stored) Claim() (Claim, error) {
	return decode(s, watcher, func(c *Claim, v envelope) error {
		c.Cluster, c.UID, c.Time = v.cluster, v.uid, v.time
		return nil
	})
}

func (c Claim) envelope() envelope {
	return envelope{
		cluster: c.Cluster, component: watcher, kind: KindCluster, verb: VerbClaimed, id: c.id(),
		selfLink: "/api/v1/namespaces/kube-system", uid: c.UID, time: c.Time,
	}
}

func (c Claim) validate() error {
	return faultIf(c.Replaces != "" && !isUID(c.Replaces), "the replaced uid is not a Kubernetes UID")
}

// Predecessor returns the UID of the cluster that had the name before the cluster with the given UID. C is the current claim. A new stream has no
// claim. In this case, it returns replaces, unless that is the cluster's own UID, as if all clusters were configured with it.
func (c Claim) Predecessor(uid, replaces string) string {
	switch {
	case c.UID == uid:
		return c.Replaces
	case c.UID == "" && replaces != uid:
		return replaces
	}
	return c.UID
}

// Watched is the event by which a watcher reports that every source in its scope that existed at a certain time is on the stream. If the next watcher
// finds a source in that scope that is not on the stream, the source was created later, while no watcher ran.
type Watched struct {
	Cluster string    `json:"-"` // the configured name
	Time    time.Time `json:"-"` // the time until which the sources were watched, by the watcher's clock
	// Scope is the scope of the watched sources.
	Scope
}

// WatchedPrefix is the prefix of the subject's name token. A digest of the scope follows, because a cluster may have watchers with different scopes.
const WatchedPrefix = "watched-"

func (w Watched) name() string { return WatchedPrefix + w.digest() }

// Subject returns keyturn.v1.<cluster>.cluster._.watched-<digest of the scope>.
func (w Watched) Subject() string {
	return Address{Cluster: w.Cluster, Kind: KindCluster, Name: w.name()}.Subject()
}

// Encode returns the Watched as a stream stores it.
func (w Watched) Encode() (Stored, error) { return encode(w) }

func (w Watched) envelope() envelope {
	return envelope{
		cluster: w.Cluster, component: watcher, kind: KindCluster, verb: VerbWatched,
		id:       w.name() + "/" + strconv.FormatInt(w.Time.UnixNano(), 10),
		selfLink: "/api/v1", uid: w.name(), time: w.Time,
	}
}

// Watched returns the stored Watched, with the errors of Change.
func (s Stored) Watched() (Watched, error) {
	return decode(s, watcher, func(w *Watched, v envelope) error {
		w.Cluster, w.Time = v.cluster, v.time
		return nil
	})
}

// Scope is the set of sources of a cluster that a watcher watches.
type Scope struct {
	Kinds             []Kind   `json:"kinds"`                       // lists the kinds of the sources
	Namespaces        []string `json:"namespaces,omitempty"`        // lists the namespaces of the sources; empty means all
	IgnoredNamespaces []string `json:"ignoredNamespaces,omitempty"` // lists the namespaces to ignore
	NamespaceSelector string   `json:"namespaceSelector,omitempty"` // select namespaces and sources by their labels; empty means all
	Selector          string   `json:"selector,omitempty"`
}

// Covers reports whether a source is in the scope, by its kind and namespace.
func (s Scope) Covers(source Source) bool {
	return slices.Contains(s.Kinds, source.Kind) && !slices.Contains(s.IgnoredNamespaces, source.Namespace) &&
		(len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, source.Namespace))
}

// digest returns a text for a subject. It is different for different scopes.
func (s Scope) digest() string {
	var text strings.Builder
	for _, kind := range s.Kinds {
		text.WriteString(string(kind) + "\n")
	}
	text.WriteString("\n" + strings.Join(s.Namespaces, "\n") + "\n\n" + s.NamespaceSelector + "\n" + s.Selector)
	if len(s.IgnoredNamespaces) > 0 {
		text.WriteString("\n\n" + strings.Join(s.IgnoredNamespaces, "\n"))
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:8])
}

func (s Scope) validate() error {
	namespaces := slices.Concat(s.Namespaces, s.IgnoredNamespaces)
	return cmp.Or(
		faultIf(len(s.Kinds) == 0, "the scope has no kinds"),
		faultIf(slices.ContainsFunc(s.Kinds, func(kind Kind) bool { return !isWord(string(kind)) }), "a kind of the scope is not a word"),
		faultIf(slices.ContainsFunc(namespaces, func(name string) bool { return !isLabel(name) }), "a namespace of the scope is not a DNS label"))
}
