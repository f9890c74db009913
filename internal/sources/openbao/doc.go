// Package openbao detects changes of secrets in OpenBao and Vault and reports each as an Observation to a sink.
//
// A store sends no events. Its audit log says at once where to look; its metadata says what is there. A follower looks at the paths in the lines that
// OpenBao's HTTP audit device or a log shipper posts, and at static roles when they should have been rotated; a poller reads whole mounts. A line
// adds who made the change if it is about the state that was read. KV v1 has no metadata: there the line of a write is the observation.
//
// Guarantee: every state of a KV v2 secret or a static role in a polled mount is eventually observed, unless a later state replaced it before it
// was read. This also holds after the feed, the sink or the store was down. What only the audit log shows (KV v1) is lost while the feed is
// down.
//
// Ordering: none, other than by Version, At and ReadAt of the Observation. The same state may be observed more than once.
//
// Failure: the receiver never makes the store wait. It puts the path of a line into a bounded set and drops the line. If the set is full or a line is
// malformed, the receiver counts it and triggers a poll, or lets a log shipper send it again. Requests to an unreachable store are retried with
// backoff, and so are observations that the sink has no room for.
//
// Trust: the senders of lines are authenticated. No value, token or HMAC of a line is kept, logged or observed, and values are never requested.
package openbao
