// Package events is the contract between the watcher and the actuator: the events, their encoding, and the streams that
// carry them. docs/events.md describes the same for readers in other languages.
//
// A watcher publishes a [Change] about each source. An actuator reads the last one of each source, and publishes an
// [Outcome] about each workload that depends on one. Both are CloudEvents in binary mode on NATS JetStream. [Connect] connects to NATS, and
// [Open] returns the [Bus] on which one cluster publishes and consumes. While NATS is unreachable, connections, consumers and readers wait.
// Publishing returns an error; the call may be repeated with the same arguments.
//
// Beside the contract, the package has what several packages need that do not import each other: [Budget], [CompareVersions], [Notices],
// [Printable] and [StoreAddress].
//
//   - CHANGES keeps the last event on each subject, which is one source or one workload. Its size is bounded by the number of objects.
//   - HISTORY keeps every event for 30 days. An event is stored there first, so HISTORY misses none. It may have a change that then lost the race for
//     CHANGES. It stores no event twice within ten minutes.
//   - DEADLETTERS keeps messages that must not be handled for 30 days, with the reason of the [RejectError].
//
// A change is stored on CHANGES once, however many watchers publish it. Each names the sequence that it supersedes, and all but the first get
// [ErrConflict]. Events on one subject are in the order in which the watcher saw the object. There is no order between subjects.
//
// A durable consumer, as of Bus.Consume, delivers at least once, again with backoff until the event is acknowledged or superseded, and holds only
// in-flight events, at most ConsumeOptions.MaxAckPending. A [Follower] acknowledges nothing: it reads the last event of each source, again whenever
// it may have missed one.
//
// No event contains a value, a part of a value, or an unkeyed digest. A program subscribes to _INBOX_<program>.<cluster>.> alone, and publishes
// only under the name of its cluster. It needs no permission to declare streams.
package events
