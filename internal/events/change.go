package events

import "time"

// Change is the event about a source: the data of every event of a watcher, and its attributes. It holds fingerprints, never
// values.
//
// The fields without JSON are attributes of the CloudEvent; the others are its data. docs/events.md lists both.
type Change struct {
	// Cluster is the configured name of the cluster that the source is in.
	Cluster string `json:"-"`
	// Source names what changed.
	Source Source `json:"-"`
	// Verb says what happened. It is one that the source's kind can have.
	Verb Verb `json:"-"`
	// UID and ResourceVersion are those of the object that was read; the event's ID is made of them. For KindOpenBao, UID is
	// the name of the store, and ResourceVersion the time of the change in nanoseconds since 1970, so that it too is higher
	// for the later of two events.
	UID             string `json:"-"`
	ResourceVersion string `json:"-"`
	// Fingerprint is the keyed fingerprint of all data keys: k<key id>:<hex>.
	Fingerprint string `json:"-"`
	// Time is when the watcher saw the change.
	Time time.Time `json:"-"`
	// Trace is the context of the span that created the event. Empty without tracing.
	Trace TraceContext `json:"-"`

	// Keys describes each data key. It is nil if Truncated is set.
	Keys map[string]Key `json:"keys,omitempty"`
	// Truncated means that the object has too many keys to list, see MaxKeys. All of them count as changed.
	Truncated bool `json:"truncated,omitempty"`
	// Changed lists, sorted, the keys that were added, changed or removed since Previous.
	Changed []string `json:"changed,omitempty"`
	// Previous is the fingerprint before this change. Empty if the source is new, or if the event is published again because the
	// stream had lost it.
	Previous string `json:"previous,omitempty"`
	// ChangedAt is the resourceVersion of the last change of content. Like that of each key, it is carried from event to
	// event. Empty if the content has not changed since the source was first observed.
	ChangedAt string `json:"changedAt,omitempty"`
	// CreatedAt is the resourceVersion at which the source appeared, or was found if it appeared while the watcher was away. It is
	// empty if the source was there before the cluster was first watched, and carried like ChangedAt. Creation does not mark the
	// keys as changed: pods that need the source could only start after it.
	CreatedAt string `json:"createdAt,omitempty"`
	// Since is when a source was created that a watcher found when it first watched its namespace, to the second. It is set if that
	// was a short time before, and carried like ChangedAt: pods of workloads that were written earlier have started without it. CreatedAt
	// is then the resourceVersion at which it was found.
	Since time.Time `json:"since,omitzero"`
	// Created means that the source appeared with this event.
	Created bool `json:"created,omitempty"`
	// Ignore means that the source is annotated with keyturn.dev/ignore or Reloader's ignore.
	Ignore bool `json:"ignore,omitempty"`
	// Hold is why the source is on hold, as HoldText returns it. Empty: it is not. Only a Secret or a ConfigMap that exists can be.
	Hold string `json:"hold,omitempty"`
	// Match means that the source is annotated with Reloader's match.
	Match bool `json:"match,omitempty"`
	// WrittenAt is the time of the newest write to the object by the API server's clock, to the second. Zero if unknown.
	WrittenAt time.Time `json:"writtenAt,omitzero"`
	// Cause is what made the change, if known. Only Secrets and ExternalSecrets have one.
	Cause *Cause `json:"cause,omitempty"`
	// Store is set for KindOpenBao only.
	Store *StoreState `json:"store,omitempty"`
	// Status is set for KindExternalSecret and KindCertificate only.
	Status *Status `json:"status,omitempty"`
	// Recent is set for KindSecretProviderClass only. It lists the fingerprints that it had last, at most MaxRecent, the current one at the end.
	// Its pods get a new content one after the other: one that gets what others had before makes no change.
	Recent []string `json:"recent,omitempty"`
}

// ID returns the event's id. It depends on what was read, not on who read it or when, so that replays, restarts and a
// second watcher produce the same id. It does not depend on the content: of the contents A, B, A within a dedupe window the
// second A would be lost.
func (c Change) ID() string {
	if c.Source.Kind == KindOpenBao && c.Store != nil {
		return c.Source.Name + "/" + c.Store.Revision
	}
	if c.Verb == VerbDeleted {
		return c.UID + "/" + c.ResourceVersion + "/deleted"
	}
	return c.UID + "/" + c.ResourceVersion
}

// Key describes one data key of a source.
type Key struct {
	// Fingerprint is the keyed fingerprint of the value. Empty if the key was removed.
	Fingerprint string `json:"fingerprint,omitempty"`
	// ChangedAt is the resourceVersion of the last change of the value. It is carried from event to event, so that a change
	// is not lost when an event about another key supersedes it on the stream. Empty if the value has not changed since the
	// source was first observed.
	ChangedAt string `json:"changedAt,omitempty"`
}

// An event lists at most MaxKeys data keys, and none if their names have more than MaxKeyNames bytes together: the
// fingerprints of the 100,000 keys that fit into an object of 1 MiB would not fit into a message.
const (
	MaxKeys     = 1000
	MaxKeyNames = 128 << 10
)

// MaxRecent is the number of fingerprints that Change.Recent lists at most.
const MaxRecent = 16

// Cause is what wrote a Secret, or what triggered the sync of an ExternalSecret.
type Cause struct {
	// Source is the writer, in the Secret's namespace: "externalsecret/db" or "certificate/web". Empty for an ExternalSecret.
	Source string `json:"source,omitempty"`
	// Event is the id of the event that triggered this write: a rotation in a secret store. Empty if unknown.
	Event string `json:"event,omitempty"`
	// Earlier is the id of the event that triggered the last write that had one, if this write has none or failed. It is
	// carried from event to event: the object still bears that id, which must not be attributed to a second change.
	Earlier string `json:"earlier,omitempty"`
	// Serial and NotAfter are those of a certificate.
	Serial   string    `json:"serial,omitempty"`
	NotAfter time.Time `json:"notAfter,omitzero"`
}

// String returns the form for people: "externalsecret/db for bao/root/secret/shop/db/7".
func (c Cause) String() string {
	if c.Event == "" {
		return c.Source
	}
	return c.Source + " for " + c.Event
}

// Status is the condition of an ExternalSecret or a Certificate.
type Status struct {
	// Secret is the name of the Secret that it writes, in the same namespace.
	Secret string `json:"secret,omitempty"`
	// Reason is that of the condition that decided: "SecretSynced", "SecretSyncedError", "Ready", "Failed".
	Reason string `json:"reason,omitempty"`
	// Revision counts the issued certificates. For an ExternalSecret it is the version that was synced last.
	Revision string `json:"revision,omitempty"`
	// NotAfter and RenewalTime are those of the certificate in the Secret.
	NotAfter    time.Time `json:"notAfter,omitzero"`
	RenewalTime time.Time `json:"renewalTime,omitzero"`
	// Expiring means that the renewal time has passed and issuing failed.
	Expiring bool `json:"expiring,omitempty"`
}

// TraceContext is a W3C trace context: https://www.w3.org/TR/trace-context/.
type TraceContext struct {
	Parent string `json:"traceparent,omitempty"`
	State  string `json:"tracestate,omitempty"`
}
