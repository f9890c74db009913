// Package events is the contract between the watcher and the actuator: the events, their encoding, and the streams that
// carry them. docs/events.md describes the same for readers in other languages.
//
// A watcher publishes a [Change] about each source. An actuator reads the last one of each source, and publishes an
// [Outcome] about each workload that depends on one. Both are CloudEvents in binary mode on NATS JetStream. [Connect] connects to NATS, and
// [Open] returns the [Bus] on which one cluster publishes and consumes.
//
// Beside the contract, the package has what several packages need that do not import each other: [Budget], [CompareVersions], [Notices],
// [Printable] and [StoreAddress].
//
// # Streams
//
//   - CHANGES keeps the last event on each subject. A subject is one source or one workload, so the stream is the current
//     state: a backlog collapses into it, a new consumer reads all of it, and its size is bounded by the number of objects.
//   - HISTORY keeps every event for 30 days. An event is stored on HISTORY before CHANGES, so HISTORY misses none. It may have
//     a change that then lost the race for CHANGES. It stores no event twice within ten minutes.
//   - DEADLETTERS keeps rejected messages for 30 days, with the reason.
//
// # Guarantees
//
//   - A change is stored on CHANGES once, however many watchers publish it. Each names the sequence that it supersedes, and
//     all but the first get [ErrConflict].
//   - A durable consumer, as of Bus.Consume, delivers at least once: an event is redelivered until it is acknowledged or superseded. Handlers must be
//     idempotent. A [Follower] acknowledges nothing: it reads the last event of each source, again whenever it may have missed one.
//   - No event contains a value, a part of a value, or an unkeyed digest.
//
// # Ordering
//
// Events on one subject have the order of their publication, which is the order in which the watcher saw the object. A
// consumer receives them in this order, except for redeliveries. There is no order between subjects.
//
// # Failure
//
//   - While NATS is unreachable, connections, consumers and readers wait. Publishing returns an error; the call may be repeated
//     with the same arguments.
//   - An event whose handler failed is redelivered with backoff, without limit.
//   - An event that must not be handled is rejected with a [RejectError]: it is copied to DEADLETTERS, logged, counted, and
//     never redelivered.
//   - [Open] returns an error that lists every wrong field if a stream is not declared as required. The programs need no
//     permission to declare streams.
//   - A durable consumer holds only in-flight events in memory, at most ConsumeOptions.MaxAckPending of them. A [Follower] holds none:
//     [LastChanges] has the last one of each source.
//
// # Permissions
//
// deploy/programs/nats.conf and deploy/nats/users.conf list the permissions of the NATS users. A program subscribes to
// _INBOX_<program>.<cluster>.> and to nothing else, and publishes only under the name of its cluster.
package events
