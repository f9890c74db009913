// Package openbao detects changes of secrets in OpenBao and Vault and reports each as an Observation to a sink.
//
// A store sends no events. Its audit log shows where to look, immediately; its metadata shows the state. Both must lead to the same event, because
// otherwise one rotation would roll twice, and a line may be late, have a time in the future, or be about a secret that was recreated. So a line is
// not an event: the metadata of its path is read, again and again until it has the version of the line. A state is identified by its version and its
// time, because versions start at one again after a deletion of the metadata.
//
// A follower looks at the paths in the lines that OpenBao's HTTP audit device or a log shipper posts, and at static roles when their rotation is due;
// a poller reads whole mounts. If a line is about the state that was read, it adds the author of the change. KV v1 has no metadata, so there the line
// of a write is the observation.
//
// Guarantee: every state of a KV v2 secret or a static role in a polled mount is eventually observed, unless a later state replaced it before it was
// read, even after an outage of the feed, the sink or the store. Changes that only the audit log shows (KV v1) are lost while the feed is down.
//
// Ordering: none, other than by Version, At and ReadAt of the Observation. The same state may be observed more than once.
//
// Failure: the receiver never makes the store wait. It puts the path of a line into a bounded set and drops the line. If the set is full or a line is
// malformed, the receiver counts it and triggers a poll, or lets a log shipper send it again. Other text is counted and logged, and does not show
// that the audit log arrives. Requests to an unreachable store are retried with backoff, and so are observations without room in the sink. A poll has
// failed if the store refused most of its requests.
//
// Trust: the senders of lines are authenticated. So lines arrive only over HTTP: the socket device has neither a login nor TLS, and drops lines that
// it cannot send. No value, token or HMAC of a line is kept, logged or observed, and values are never requested.
package openbao
