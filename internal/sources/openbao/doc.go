// Package openbao sees that secrets in OpenBao and Vault have changed, and gives what it has seen to a sink.
//
// A store has no events. Its audit log is what tells at once, its metadata is what is true. This package takes both: an
// HTTP receiver (OpenBao's HTTP audit device), a receiver of lines (the socket audit device), and a poller of metadata.
// All three give the same Observation for the same state.
//
// The guarantee: every state of a KV v2 secret or a static role in a mount that is polled is observed at some time after it came to
// be, unless another superseded it before anybody looked; also after the feed, the sink or the store was down. What is seen
// in the audit alone (KV v1, stores without credentials) is lost while the feed is down.
//
// Ordering: none but by Version, At and ReadAt of the Observation. The same state may be observed more than once.
//
// Failure: a receiver never makes the store wait. It takes what it needs from a line, puts it into a bounded spool, and
// forgets the line; when the spool is full, or a line cannot be read, that is counted and the store is polled. A store that
// cannot be reached is asked again, with a delay that grows. A sink that has no room is offered the observation again.
//
// Trust: what comes over HTTP is authenticated. The socket audit device cannot authenticate, so what it says of a secret whose
// metadata can be read is only a hint where to look. No value, token or HMAC of an audit line is kept, logged or observed, and
// values are never asked for.
package openbao
