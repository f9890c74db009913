// Package openbao detects changes of secrets in OpenBao and Vault and reports each as an Observation to a sink.
//
// A store sends no events. Its audit log says at once where to look; its metadata says what is there. Both must lead to the same event, or one
// rotation rolls twice, and a line may be late, of a time to come, or of a secret that was made anew. So a line is no event: the metadata of its path
// are read, again until they have the version of the line. A state is named by its version and its time, because a version begins again at one after
// the metadata were deleted.
//
// A follower looks at the paths in the lines that OpenBao's HTTP audit device or a log shipper posts, and at static roles when they should have been
// rotated; a poller reads whole mounts. A line adds who made the change if it is about the state that was read. KV v1 has no metadata: there the line
// of a write is the observation.
//
// Guarantee: every state of a KV v2 secret or a static role in a polled mount is eventually observed, unless a later state replaced it before it
// was read. This also holds after the feed, the sink or the store was down. What only the audit log shows (KV v1) is lost while the feed is
// down.
//
// Ordering: none, other than by Version, At and ReadAt of the Observation. The same state may be observed more than once.
//
// Failure: the receiver never makes the store wait. It puts the path of a line into a bounded set and drops the line. If the set is full or a line is
// malformed, the receiver counts it and triggers a poll, or lets a log shipper send it again. What is no line of an audit log is counted and logged,
// and is no sign that the audit log arrives. Requests to an unreachable store are retried with backoff, and so are observations that the sink has no
// room for. A poll that is refused most of what it asks for has failed.
//
// Trust: the senders of lines are authenticated. So lines come over HTTP alone: the socket device has neither a login nor TLS, and drops what it
// cannot send. No value, token or HMAC of a line is kept, logged or observed, and values are never requested.
package openbao
