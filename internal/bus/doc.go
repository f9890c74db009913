// Package bus publishes and consumes events on NATS JetStream. [Connect] connects to NATS, [Open] returns the [Bus] of one cluster, and [OpenFleet] a
// [Reader] of all clusters.
//
//   - CHANGES keeps the last event on each subject, which is one source or one workload. Its size is bounded by the number of objects.
//   - HISTORY keeps every event for 30 days, except beyond the share of a namespace. Outcomes are stored there first, and changes at the same time as
//     on CHANGES: Bus.PublishChange and Bus.StateAtStart store later what it lacks. It may have a change that lost the race for CHANGES. It stores no
//     event twice within ten minutes.
//   - DEADLETTERS keeps messages that must not be handled for 30 days, with the reason of the [events.RejectError].
//
// Guarantee: a change is stored on CHANGES once, however many watchers publish it. Each names the sequence that it supersedes, and all but the first
// get [ErrConflict]. A durable consumer, as of Bus.Consume, delivers at least once, again with backoff until the event is acknowledged or superseded,
// and holds only in-flight events, at most ConsumeOptions.MaxAckPending. A [Follower] acknowledges nothing: it reads the last event of each source,
// again whenever it may have missed one.
//
// Ordering: events on one subject are in the order in which the watcher saw the object. There is no order between subjects.
//
// Failure: while NATS is unreachable, connections, consumers and readers wait. Publishing returns an error; the call may be repeated with the same
// arguments. A [StreamGuard] warns about streams that are not as required, and repairs those of an embedded server.
//
// Permissions: a program subscribes to _INBOX_<program>.<cluster>.> alone, and publishes only under the name of its cluster. It needs no permission
// to declare streams; only the program with the embedded server declares them, see [Declare].
package bus
