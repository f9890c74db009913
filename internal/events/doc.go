// Package events is the contract between the programs: the events, their encoding, their subjects, and the names of the streams.
// docs/reference/events.md describes the same for readers in other languages. Package bus carries the events. This one has no connection
// and no clock.
//
// A watcher publishes a [Change] about each source. An actuator reads the last one of each source, and publishes an [Outcome] about each workload
// that depends on one. A projector publishes a [Projection] about each resource that wants values of Secrets. With a [Claim] and with [Watched], a
// watcher says which cluster has a name, and until when its sources were watched. All of them are CloudEvents in the binary mode of NATS: see
// [HeaderOf] and [FromMsg].
//
// Failure: a message that breaks the contract is a [RejectError], and becomes a [DeadLetter] with its reason.
//
// No event contains a value, a part of a value, or an unkeyed digest. The golden files in testdata hold the form: another one needs a new version in
// the type.
//
// Beside the contract, the package has what several packages need that do not import each other: [Budget], [CompareVersions], [Notices],
// [Printable], [PrintableLines] and [StoreAddress].
package events
