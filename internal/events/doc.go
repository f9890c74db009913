// Package events is the contract between the programs: what is said, how it is written, and the streams that carry it.
//
// # Guarantees
//
// A watcher publishes Changes and an actuator publishes Outcomes, each as a CloudEvent on a NATS JetStream.
//
//   - The stream CHANGES keeps the last event on every subject, and a subject is one source or one workload. So it is the
//     state of everything there is: a backlog coalesces by itself, a newcomer reads all of it, and its size is bounded by
//     the number of objects.
//   - The stream HISTORY keeps every event for 30 days. Nothing is on CHANGES that was not on HISTORY first. It may hold a
//     change that lost a race for CHANGES; it holds no event twice within ten minutes.
//   - A change is stored on CHANGES once, however many watchers say it: each publication names the sequence that it
//     supersedes. The watcher that comes second gets ErrConflict.
//   - A change that is the last on its subject is delivered to a consumer until it is acknowledged. One that was superseded
//     before it was acknowledged is not delivered again. A handler must be idempotent: every event may come more than once.
//   - No event holds a value, a part of one, or a digest that was made without a key.
//
// # Ordering
//
// Events on one subject are in the order of their publication, which is the order in which the watcher saw the object. A
// consumer gets them in that order, but for those that are delivered again. Between subjects there is no order to rely on.
//
// # Failure
//
//   - NATS that is away is waited for, by connections, consumers and readers of the state alike. Publishing returns the
//     error, and may be repeated with the same arguments.
//   - An event that could not be handled is delivered again with a growing delay, without end.
//   - An event that must not be handled is refused with a typed reason: see the Reason constants. It is copied to the
//     stream DEADLETTERS, logged and counted, and never delivered again.
//   - Streams that are not declared as they must be are an error at Open, with every difference named. The programs need
//     no right to declare them.
//   - Nothing is queued in memory but what was delivered and not yet finished, at most ConsumeOptions.MaxAckPending events.
//
// # Rights
//
// The programs of a cluster use no other subjects than these, so these are what their NATS users need. They subscribe to
// _INBOX_watcher.<cluster>.> and _INBOX_actuator.<cluster>.>, and both publish on:
//
//	keyturn.v1.<cluster>.>, keyturn.history.v1.<cluster>.>    events
//	$JS.API.STREAM.INFO.*                                     Open
//	$JS.API.DIRECT.GET.CHANGES.keyturn.v1.<cluster>.>         Bus.Last, Bus.Claim
//	$JS.API.CONSUMER.{CREATE,INFO,DELETE}.CHANGES.>           Bus.State
//	$JS.API.CONSUMER.MSG.NEXT.CHANGES.>                       Bus.State, Bus.Consume
//
// The actuator also publishes on:
//
//	keyturn.deadletter.v1.<cluster>.>                         refused events
//	$JS.API.CONSUMER.{CREATE,INFO,MSG.NEXT}.DEADLETTERS.>     Bus.DeadLetters
//	$JS.API.CONSUMER.{CREATE,INFO,MSG.NEXT}.HISTORY.>         Bus.ConsumeOutcomes
//	$JS.ACK.>                                                 Delivery.Done
//	$JS.API.DIRECT.GET.CHANGES.keyturn.v1.<other>.openbao.>   Bus.Last, for each of ConsumeOptions.StoresFrom
package events
