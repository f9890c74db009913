// Package sources detects changes of the objects that workloads depend on, and publishes them as events.
//
// Guarantee: every change of the content of a source in scope reaches the stream CHANGES eventually, even if it happened while the watcher, NATS or
// the API server was down, and no event reports a change if the content did not change. Content is compared, by keyed fingerprints, with the last
// event on the source's subject. The stream is the only state that survives a restart. If it loses events while the watcher runs, the watcher
// publishes them again.
//
// Ordering: the events of one source are in the order of its changes. Changes that come faster than they can be published become one event about the
// latest content. Between sources there is no order.
//
// Failure: a source whose event cannot be published is retried, with a backoff of up to three seconds, until it is published. The queue holds each
// source once, so its size is bounded by the number of sources.
//
// A change of a Secret goes through these steps. The informer reduces the Secret to fingerprints (kinds.Reduce) before it is cached: no value
// stays in this package or leaves it. objectHandler puts the source into pendingSources, from which a worker takes it. The reconciler gets the last
// event from the ledger. An objectAssessor looks the object up in the kinds.Cache, and its kind compares it with that event (kinds/secret.go,
// kinds/compare.go). The throttle may delay the event. Then the publisher publishes it as the successor of the last event, and records it in the
// ledger.
//
// Several watchers of one cluster are equals. Each publishes with the sequence of the last event that it knows, so that only one of them succeeds;
// the others read its event and compare again (see reconcile), unless their cache may be older than the event (see doubt).
package sources
