// Package events is the contract between the programs: the events, their encoding, their subjects, and the names of the streams.
// docs/reference/events.md describes the same for readers in other languages. Package bus carries the events. This one has no connection
// and no clock.
//
// A watcher publishes a [Change] about each source. An actuator reads the last one of each source, and publishes an [Outcome] about each workload
// that depends on one. A projector publishes a [Projection] about each resource that wants values of Secrets. A watcher also publishes a [Claim] on
// the name of its cluster, and a [Watched] with the time until which sources were watched. All of them are CloudEvents in the binary mode of NATS:
// see [Stored.Message] and [NewStored].
//
// Failure: a message that breaks the contract is a [RejectError], and becomes a [DeadLetter] with its reason.
//
// No event contains a value, a part of a value, or an unkeyed digest. The golden files in testdata fix the wire format: a new one needs a new version
// in the type.
//
// The package also contains helpers for packages that do not import each other: [Budget], [CompareVersions], [Notices], [Printable], [PrintableLines]
// and [StoreAddress].
package events
