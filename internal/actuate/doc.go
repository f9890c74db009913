// Package actuate carries out what changes mean to workloads: it finds those that depend on a changed source, has internal/plan decide
// what the change means to each, and sends the one patch that rolls or records.
//
// Guarantee: when an event is acked, every workload that depends on its source has been patched, or needs no patch for a reason that
// was reported, or waits with a later event of the source, which is not acked. A redelivered, late or superseded event changes nothing: what
// a workload was last rolled for is written on the workload itself, by the patch that rolled it. No other state could disagree with it, and
// everything that waits, waits on the stream.
//
// Ordering: the changes of one workload are gathered in its debounce window and make one roll, to the last content. Between workloads
// there is no order, but for their waves. Namespaces take turns: no workload waits for one of another namespace, but for a slot.
//
// Failure: a patch that fails is retried with a backoff and holds up no other workload. If the API server denies it for good, its events
// are dead-lettered once nothing else holds them.
//
// The loop (loop.go) calls parts that own their state and know nothing of it, in the order of an event's way:
//
//	inflight.go, intake.go          takes an event to the workloads that depend on its source (index.go)
//	debounce.go, pending.go         the debounce window, and what is held; turns.go has the namespaces take turns
//	dispatcher.go                   decides what is due; dater.go finds in the history when a change was written
//	admission.go                    what a roll has to wait for: timing.go, reloads.go, waves.go, peers.go, canaries.go, limits.go
//	inplace.go                      whether pods are asked to reload instead of being replaced
//	patcher.go, roll.go             sends the patch
//	completion.go                   follows, releases, retries or gives up
//	recorder.go, recordreads.go     completes records of workloads that nothing was decided for yet; acks.go knows which events are acked
//	denials.go                      what the recorder must not record: rolls that the API server refused
//	following.go, rollouts.go       follows a rollout to its end; resumer.go takes up those of an earlier leader
//	notes.go                        makes the patches that only write a record, for the parts that follow
//	pauses.go, owing.go             write on workloads for the next leader that a pause has begun, and what they wait for
//	starts.go, shadows.go           take up the Jobs that others have started or deleted
//	reverts.go                      has rolls repeated that someone else took back; recaller.go asks for the change
//	concluder.go                    releases what needs no patch
//	teller.go, outbox.go, publisher.go, kubeevents.go, problems.go   report outcomes and problems
//
// The index is filled by reflectors: reflect.go, reflectcustom.go, store.go, and poller.go without the permission to watch. links.go and runners.go
// say how workloads in it depend on sources and on each other, unserved.go which kinds the API server does not serve, and namespaces.go what
// namespaces say about their workloads.
//
// build.go puts them together for each term as the leader (leader.go). ExternalSecrets that read a changed secret in a store are synced
// by internal/forcesync.
package actuate
