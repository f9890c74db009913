// Package openbao detects changes of secrets in OpenBao and Vault and reports each as an Observation to a sink.
//
// A store sends no events. Its audit log says at once where to look; its metadata says what is there. This package uses both: an HTTP
// receiver, to which OpenBao's HTTP audit device or a log shipper posts, and a poller of metadata, which also reads static roles when they
// should have been rotated. A line of the audit log makes the metadata of its path be read, and adds who made the change if it is about the
// state that was read. KV v1 has no metadata: there the line of a write is the observation.
//
// Guarantee: every state of a KV v2 secret or a static role in a polled mount is eventually observed, unless a later state replaced it before it
// was read. This also holds after the feed, the sink or the store was down. What only the audit log shows (KV v1) is lost while the feed is
// down.
//
// Ordering: none, other than by Version, At and ReadAt of the Observation. The same state may be observed more than once.
//
// Failure: the receiver never makes the store wait. It extracts what it needs from a line, puts that into a bounded set and drops the
// line. If the set is full or a line is malformed, the receiver counts it and triggers a poll, or lets a log shipper send it again. Requests to
// an unreachable store are retried with backoff, and so are observations that the sink has no room for.
//
// Trust: the senders of lines are authenticated. No value, token or HMAC of an audit line is kept, logged or observed, and values are never
// requested.
package openbao
