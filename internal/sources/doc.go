// Package sources detects changes of the objects that workloads depend on, and publishes them as events.
//
// Guarantee: every change of the content of a source in scope reaches the stream CHANGES eventually, even if it happened while
// the watcher, NATS or the API server was down, and no event says changed if the content did not change. Content is compared,
// by keyed fingerprints, with the last event on the source's subject. The stream is the only state that survives a restart. If
// it loses events while the watcher runs, the watcher publishes them again (see recovery.go).
//
// Ordering: the events of one source are in the order of its changes. Changes that come faster than they can be published
// become one event about the latest content. Between sources there is no order.
//
// Failure: a source whose event cannot be published is retried, with a backoff of up to three seconds, until it is published. The
// queue holds each source once, so its size is bounded by the number of sources.
//
// ExternalSecrets and Certificates are sources too; their content is their status (see status.go). No workload depends on them:
// they cause changes of the Secrets that they write, whose events name them (see cause.go).
//
// Values are replaced by fingerprints before an object is cached (see fingerprint.go). No value leaves this package or stays in
// it.
package sources
