package events

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Change is the event that a watcher publishes about a source. It contains fingerprints, never values.
//
// The fields that are not encoded as JSON are attributes of the CloudEvent. The others are its data. docs/reference/events.md lists both.
type Change struct {
	Cluster string `json:"-"` // the configured name of the cluster that the source is in
	Source  Source `json:"-"` // the changed source
	// Verb says what happened. It must be one of the verbs of the source's kind.
	Verb Verb `json:"-"`
	// UID and ResourceVersion belong to the object that was read, and form the event's ID. For KindOpenBao, UID is the name of the store, and
	// ResourceVersion is the time of the change in nanoseconds since 1970, so that the later of two events has the higher one, as in Kubernetes.
	UID             string       `json:"-"`
	ResourceVersion string       `json:"-"`
	Fingerprint     string       `json:"-"` // the keyed fingerprint of all data keys: k<key id>:<hex>
	Time            time.Time    `json:"-"` // when the watcher saw the change
	Trace           TraceContext `json:"-"` // the context of the span that created the event; empty without tracing

	Keys map[string]Key `json:"keys,omitempty"` // describes each listed data key
	// Truncated means that some keys are not listed, see MaxKeys. They count in Buckets. Without Buckets, all keys count as changed.
	Truncated bool `json:"truncated,omitempty"`
	// Buckets describes the unlisted keys, by the name of their bucket: see Bucket. The fingerprint covers all unlisted keys in the bucket, and is
	// empty if there are none any more. A bucket stays after its last unlisted key was removed, because that may be the change.
	Buckets map[string]Key `json:"buckets,omitempty"`
	Changed []string       `json:"changed,omitempty"` // lists, sorted, the listed keys that were added, changed or removed since Previous
	// Previous is the previous fingerprint. It is empty for a new source, or if the stream had lost the event, which is published again.
	Previous string `json:"previous,omitempty"`
	// ChangedAt is the resourceVersion of the last change of content. Like the ChangedAt of each key, it is carried from event to
	// event. It is empty if the content has not changed since the source was first observed.
	ChangedAt string `json:"changedAt,omitempty"`
	// CreatedAt is the resourceVersion at which the source appeared, or at which it was found if it appeared while no watcher ran.
	// It is empty if the source existed before the cluster was first watched, and it is carried like ChangedAt. Creation does not
	// mark the keys as changed: pods that need the source could only start after it.
	CreatedAt string `json:"createdAt,omitempty"`
	// Since is the creation time, in whole seconds, of a source that a watcher found when it first watched the namespace. It is set only if the
	// source was created shortly before, and it is carried like ChangedAt: pods of workloads that were written before that time have started without
	// the source. CreatedAt is then the resourceVersion at which the source was found.
	Since   time.Time `json:"since,omitzero"`
	Created bool      `json:"created,omitempty"` // the source appeared with this event
	Ignore  bool      `json:"ignore,omitempty"`  // the source is annotated with keyturn.dev/ignore or Reloader's ignore
	// Hold is why the source is on hold, as HoldText returns it, or empty. Only a Secret or a ConfigMap that exists can be on hold.
	Hold  string `json:"hold,omitempty"`
	Match bool   `json:"match,omitempty"` // the source is annotated with Reloader's match
	// WrittenAt is the time of the newest write to the object by the API server's clock, in whole seconds. It is zero if unknown.
	WrittenAt time.Time `json:"writtenAt,omitzero"`
	// Cause is the cause of the change, if known. Only Secrets and ExternalSecrets have one.
	Cause  *Cause      `json:"cause,omitempty"`
	Store  *StoreState `json:"store,omitempty"`  // set for KindOpenBao only
	Status *Status     `json:"status,omitempty"` // set for KindExternalSecret and KindCertificate only
	// Recent is set for KindSecretProviderClass only. It lists the most recent fingerprints, at most MaxRecent, with the current one last.
	// Pods get new content one after the other: a pod that gets content that others had before makes no change.
	Recent []string `json:"recent,omitempty"`
	// Writers are the field managers that last wrote the source, the newest first, at most MaxWriters. They are set only if the source was also
	// written less than Soon before, as endless changes may come from two writers that undo each other's writes.
	Writers []string `json:"writers,omitempty"`
	// Generated is set if the writer of the source derives some of its keys from others, with different bytes each time.
	Generated *Generated `json:"generated,omitempty"`
	// Problem is the problem of the annotation that lists ignored keys, as HoldText returns it, or empty.
	Problem string `json:"problem,omitempty"`
}

// ID returns the event's id. It depends on the object's state, not on who read it or when, so that replays, restarts and a second watcher produce the
// same id. It does not depend on the content: if the content went from A to B and back to A within a dedupe window, the second A would be lost.
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
	Fingerprint string `json:"fingerprint,omitempty"` // the keyed fingerprint of the value; empty if the key was removed
	// ChangedAt is the resourceVersion of the last change of the value. It is carried from event to event, so that a change is not lost when an event
	// about another key supersedes it on the stream. It is empty if the value has not changed since the source was first observed.
	ChangedAt string `json:"changedAt,omitempty"`
	// Added says that the change at ChangedAt added the key, and that the source never had it before, as far as the watcher knows, so that no pods
	// that need the key have started before.
	Added bool `json:"added,omitempty"`
	// Ignored says why the key does not count unless a workload names it: IgnoredByAnnotation or IgnoredAsStaticCreds. It is empty if the key counts.
	Ignored string `json:"ignored,omitempty"`
	// Since is the resourceVersion at which a key began to count again. Changes up to then do not count, because it is unknown which of its values
	// the pods have. It is carried like ChangedAt, until the value changes.
	Since string `json:"since,omitempty"`
}

// The reasons why a key does not count.
const (
	IgnoredByAnnotation  = "annotation"   // keyturn.dev/ignore-keys names it
	IgnoredAsStaticCreds = "static-creds" // it is in Vault's response for a static role, and differs in each
)

// Bucket returns the name of the bucket of an unlisted data key: the first byte of the SHA-256 of its name, as two hex digits. There are 256 buckets.
//
// The hash needs no secret key: the actuator has none, but must find the bucket of a key that pods read, and events list names in the clear. The
// content of a bucket is covered by keyed fingerprints.
func Bucket(key string) string {
	digest := sha256.Sum256([]byte(key))
	return hex.EncodeToString(digest[:1])
}

// Key returns the state of a data key in the change, and whether the change lists the key. For an unlisted key, it is the state of the key's bucket,
// or of all keys if the change is truncated and has no buckets.
func (c Change) Key(name string) (key Key, isListed bool) {
	key, isListed = c.Keys[name]
	switch {
	case isListed:
	case len(c.Buckets) > 0:
		key = c.Buckets[Bucket(name)]
	case c.Truncated:
		key = Key{Fingerprint: c.Fingerprint, ChangedAt: c.ChangedAt}
	}
	return key, isListed
}

// Generated describes the basis of keys with different bytes at each write, such as keystores, which have salts. The fingerprint of such a key is
// that of the bytes with which it last changed. All fields are keyed fingerprints.
type Generated struct {
	From string `json:"from"` // of the content that they are derived from
	// Settings is the fingerprint of the passwords and profiles with which they were written, and Written that of their bytes. Both are empty if the
	// settings are unknown.
	Settings string `json:"settings,omitempty"`
	Written  string `json:"written,omitempty"`
}

// An event lists at most MaxKeys data keys, whose names have at most MaxKeyNames bytes together: the fingerprints of the
// 100,000 keys that fit into an object of 1 MiB would not fit into a message.
const (
	MaxKeys     = 1000
	MaxKeyNames = 128 << 10
)

// MaxRecent is the maximum number of fingerprints in Change.Recent.
const MaxRecent = 16

// Soon is the maximum time between two changes of a source that count as part of endless changes.
const Soon = 10 * time.Minute

// MaxWriters is the maximum number of names in Change.Writers, and maxWriter the maximum length of one in bytes, as in Kubernetes.
const (
	MaxWriters = 4
	maxWriter  = 128
)

// writersText returns names of field managers in readable form: one line each, without empty ones, at most MaxWriters.
func writersText(names []string) []string {
	var texts []string
	for _, name := range names {
		if text := Shorten(name, maxWriter); text != "" && len(texts) < MaxWriters {
			texts = append(texts, text)
		}
	}
	return texts
}

// Cause is the writer of a Secret, or the trigger of the sync of an ExternalSecret.
type Cause struct {
	// Source is the writer, in the Secret's namespace: "externalsecret/db" or "certificate/web". It is empty for an ExternalSecret.
	Source string `json:"source,omitempty"`
	Event  string `json:"event,omitempty"` // the id of the event that triggered this write, a rotation in a secret store; empty if unknown
	// Earlier is set if this write has no triggering event, or failed. It is the id of the event that triggered the last write that
	// had one. It is carried from event to event: the object still bears that id, which must not be attributed to a second change.
	Earlier  string    `json:"earlier,omitempty"`
	Serial   string    `json:"serial,omitempty"` // of a certificate, as NotAfter
	NotAfter time.Time `json:"notAfter,omitzero"`
}

// String returns a human-readable form: "by externalsecret/db for bao/root/secret/shop/db/7". It omits unknown parts.
func (c Cause) String() string {
	var parts []string
	if c.Source != "" {
		parts = append(parts, "by "+c.Source)
	}
	if c.Event != "" {
		parts = append(parts, "for "+c.Event)
	}
	return strings.Join(parts, " ")
}

// Status is the condition of an ExternalSecret or a Certificate.
type Status struct {
	Secret string `json:"secret,omitempty"` // the name of the Secret that the object writes, in the same namespace
	Reason string `json:"reason,omitempty"` // the reason of the decisive condition: "SecretSynced", "SecretSyncedError", "Ready", "Failed"
	// Revision counts the issued certificates. For an ExternalSecret, it is the version that was synced last.
	Revision    string    `json:"revision,omitempty"`
	NotAfter    time.Time `json:"notAfter,omitzero"` // of the certificate in the Secret, as RenewalTime
	RenewalTime time.Time `json:"renewalTime,omitzero"`
	Expiring    bool      `json:"expiring,omitempty"` // the renewal time has passed and issuing failed
}
