package events

import "time"

// Verb is the past tense in the type of an event: dev.keyturn.<kind>.<verb>.v1.
type Verb string

// The verbs of changes and of outcomes.
const (
	// VerbObserved says that a source exists which the stream did not know. It rolls nothing.
	VerbObserved Verb = "observed"
	// VerbChanged says that the content of a source is not what it was last.
	VerbChanged Verb = "changed"
	// VerbDeleted says that a source is gone. The event expires after TombstoneTTL.
	VerbDeleted Verb = "deleted"
	// VerbRotated is VerbChanged for a secret in a store.
	VerbRotated Verb = "rotated"

	// VerbSynced says that an ExternalSecret was written to its Secret.
	VerbSynced Verb = "synced"
	// VerbIssued says that a Certificate was issued, for the first time or anew.
	VerbIssued Verb = "issued"

	// VerbStarted says that the pod template of a workload was patched and its pods are being replaced.
	VerbStarted Verb = "started"
	// VerbCompleted says that the last pod of a rollout is ready.
	VerbCompleted Verb = "completed"
	// VerbFailed says that a rollout, or the patch that should have begun it, failed for good; or that an ExternalSecret
	// could not be synced or a Certificate not be issued.
	VerbFailed Verb = "failed"
	// VerbSkipped says that a change was found not to concern a workload that depends on its source, and why.
	VerbSkipped Verb = "skipped"
	// VerbHeld says that a workload waits, and for what.
	VerbHeld Verb = "held"

	// VerbClaimed says which cluster has a name.
	VerbClaimed Verb = "claimed"
)

// Change is what is said about a source: the payload of all events but those of rollouts, with the attributes that the
// envelope carries. It holds fingerprints, never values.
type Change struct {
	// Cluster is the configured name of the cluster the source is in.
	Cluster string `json:"-"`
	// Source is what changed.
	Source Source `json:"-"`
	// Verb is one of those that events of the source's kind can have.
	Verb Verb `json:"-"`
	// UID and ResourceVersion are those of the object as it was read. Together they are the id of the event. Of a secret in
	// a store the UID is the name of the store, and the ResourceVersion the time of the change in nanoseconds since 1970:
	// of two events of one path the later has the higher.
	UID             string `json:"-"`
	ResourceVersion string `json:"-"`
	// Fingerprint is the keyed fingerprint over all data keys, `k<key id>:<hex>`.
	Fingerprint string `json:"-"`
	// Time is when the watcher saw it.
	Time time.Time `json:"-"`
	// Trace is the W3C trace context in which the event was created. Empty when tracing is off.
	Trace TraceContext `json:"-"`

	// Keys holds what is known of every data key. It is nil, and Truncated true, where there are too many: see MaxKeys.
	Keys map[string]Key `json:"keys,omitempty"`
	// Truncated says that the object has too many keys to list: each of them counts as changed.
	Truncated bool `json:"truncated,omitempty"`
	// Changed lists the keys that were added, changed or removed since Previous, in order.
	Changed []string `json:"changed,omitempty"`
	// Previous is the fingerprint before this change. Empty where the source is new.
	Previous string `json:"previous,omitempty"`
	// ChangedAt is the resourceVersion at which any of the content was last seen to change, carried from event to event like
	// that of each key. Empty: not changed since the source was first observed.
	ChangedAt string `json:"changedAt,omitempty"`
	// CreatedAt is the resourceVersion at which the source appeared, where it did while the watcher was running. It is carried
	// like ChangedAt. Its keys are not marked as changed by that: pods that need the source have read it as it was created.
	CreatedAt string `json:"createdAt,omitempty"`
	// Created says that this event is that of the appearance.
	Created bool `json:"created,omitempty"`
	// Ignore says that the source carries keyturn.dev/ignore or Reloader's ignore annotation.
	Ignore bool `json:"ignore,omitempty"`
	// Match says that the source carries Reloader's match annotation.
	Match bool `json:"match,omitempty"`
	// WrittenAt is the API server's time of the newest write to the object, where it tells. One second's precision.
	WrittenAt time.Time `json:"writtenAt,omitzero"`
	// Cause is what wrote the Secret, or had the ExternalSecret synced, where it is known.
	Cause *Cause `json:"cause,omitempty"`
	// Store is there for KindOpenBao, and for no other.
	Store *StoreState `json:"store,omitempty"`
	// Status is there for KindExternalSecret and KindCertificate, and for no other.
	Status *Status `json:"status,omitempty"`
}

// Cause is what had a Secret written, or an ExternalSecret synced.
type Cause struct {
	// Source is the writer, in the namespace of the Secret: "externalsecret/db" or "certificate/web". Empty for an
	// ExternalSecret, which has none but itself.
	Source string `json:"source,omitempty"`
	// Event is the id of the event that had it written now: that of a rotation in a secret store. Empty where none is known.
	Event string `json:"event,omitempty"`
	// Earlier is the id of the event that had it written the last time that one had, where this change has no event of its
	// own, or failed. It is carried from event to event, so that what is still noted on the object is not taken for news.
	Earlier string `json:"earlier,omitempty"`
	// Serial and NotAfter are those of a certificate.
	Serial   string    `json:"serial,omitempty"`
	NotAfter time.Time `json:"notAfter,omitzero"`
}

// String is the form for people: "externalsecret/db for bao/root/secret/shop/db/7".
func (c Cause) String() string {
	if c.Event == "" {
		return c.Source
	}
	return c.Source + " for " + c.Event
}

// Status is how an ExternalSecret or a Certificate stands.
type Status struct {
	// Secret is the name of the Secret that is written, in the same namespace.
	Secret string `json:"secret,omitempty"`
	// Reason is the reason of the condition that decides: "SecretSynced", "SecretSyncedError", "Ready", "Failed".
	Reason string `json:"reason,omitempty"`
	// Revision counts the certificates that were issued. For an ExternalSecret it is the version that was synced last.
	Revision string `json:"revision,omitempty"`
	// NotAfter and RenewalTime are those of the certificate that is in the Secret.
	NotAfter    time.Time `json:"notAfter,omitzero"`
	RenewalTime time.Time `json:"renewalTime,omitzero"`
	// Expiring says that the time to renew the certificate is past and that issuing it failed.
	Expiring bool `json:"expiring,omitempty"`
}

// Key is what is known of one data key of a source.
type Key struct {
	// Fingerprint is the keyed fingerprint of the value. Empty where the key was removed.
	Fingerprint string `json:"fingerprint,omitempty"`
	// ChangedAt is the resourceVersion at which the value was last seen to change. It is carried from event to event, so
	// that a change is not forgotten when a later event about another key supersedes it on the stream. Empty: not changed
	// since the source was first observed.
	ChangedAt string `json:"changedAt,omitempty"`
}

// An event lists no more data keys than MaxKeys, and none of them where their names together have more than MaxKeyNames
// bytes. An object of 1 MiB can have more than a hundred thousand keys, whose fingerprints would not fit into a message.
const (
	MaxKeys     = 1000
	MaxKeyNames = 128 << 10
)

// TraceContext is a W3C trace context: https://www.w3.org/TR/trace-context/.
type TraceContext struct {
	Parent string `json:"traceparent,omitempty"`
	State  string `json:"tracestate,omitempty"`
}

// ID is the id of the event: deterministic, so that replays, restarts and a second watcher collapse. It is never made
// from the content: A, B, A within a dedupe window would lose the second A.
func (c Change) ID() string {
	if c.Source.Kind == KindOpenBao && c.Store != nil {
		return c.Source.Name + "/" + c.Store.Revision
	}
	if c.Verb == VerbDeleted {
		return c.UID + "/" + c.ResourceVersion + "/deleted"
	}
	return c.UID + "/" + c.ResourceVersion
}
