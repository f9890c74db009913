// Package sources sees that something which workloads depend on has changed, and says so as an event.
//
// The guarantee: every change of the content of a source in scope is on the stream CHANGES at some time after it
// happened, also when it happened while the watcher, NATS or the API server was down, and no event says changed where
// the content did not. Content is compared by keyed fingerprints with the last event on the source's subject, which is the
// only state there is: nothing is remembered across restarts but what the stream remembers.
//
// Ordering: events of one source are in the order of its changes. Changes which come faster than they can be published
// are one event, about the last content. Between sources there is no order.
//
// Failure: a source whose event cannot be published is tried again, with a delay that grows to 30 seconds, until it can.
// The queue holds each source once, so its size is bounded by the number of sources.
//
// ExternalSecrets and Certificates are sources too, whose content is how they stand (see standing.go). Nothing depends on
// them: they are causes of what happens to the Secrets that they write, and the events of these say so (see cause.go).
//
// Values are replaced by fingerprints before an object is cached (see fingerprint.go). No value leaves this package, nor
// stays in it.
package sources
