// Package sources detects changes of the objects that workloads depend on, and publishes them as events.
//
// Guarantee: every change of the content of a source in scope reaches the stream CHANGES eventually, even if it happened while the watcher, NATS or
// the API server was down, and no event says changed if the content did not change. Content is compared, by keyed fingerprints, with the last event
// on the source's subject. The stream is the only state that survives a restart. If it loses events while the watcher runs, the watcher publishes
// them again.
//
// Ordering: the events of one source are in the order of its changes. Changes that come faster than they can be published become one event about the
// latest content. Between sources there is no order.
//
// Failure: a source whose event cannot be published is retried, with a backoff of up to three seconds, until it is published. The queue holds each
// source once, so its size is bounded by the number of sources.
//
// A change of a Secret takes this way. The informer reduces the Secret to fingerprints (kinds.Transform) before it is cached: no value stays in this
// package or leaves it. objectHandler puts the source into pendingSources, and a worker takes it from there. The reconciler gets the last event from
// the ledger and lets an objectAssessor compare the two: that looks the object up in the kinds.Cache and asks its kind, which compares it
// (kinds/secret.go, kinds/compare.go). The throttle may let the event wait. Then the publisher publishes it as the successor of the last event, and
// sets it in the ledger.
//
// Several watchers of one cluster are equals. Each publishes with the sequence of the last event that it knows, so that of two only one succeeds; the
// other reads that event and compares again (see reconcile), unless its cache may be older than the event (see doubt).
package sources
