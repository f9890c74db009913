// Package actuate rolls workloads when their sources change. It finds the workloads that depend on a changed source, asks internal/plan what the
// change means for each of them, and sends one patch that rolls the workload or records the change.
//
// Guarantee: the last change of each source and the record on each workload determine what a workload is to be rolled for, whoever leads. The patch
// that rolls a workload also records the changes, so no other state can disagree with the record. Where a workload has no record yet and must wait,
// its pending changes are noted on it.
//
// Ordering: the changes of one workload are gathered in its debounce window and lead to one roll, to the last content. Within a namespace, workloads
// have an order by waves, for a canary and after a failure. Namespaces take turns: a workload waits for workloads of other namespaces only if there
// is no free slot.
//
// Failure: a patch that fails or is denied is retried with backoff until it succeeds, and delays no other workload. A denial is reported once.
//
// The loop (loop.go) has eleven parts, which own their state and do not know the loop. In the order in which a change passes them:
//
//	intake      compares sources, of which state.go has the last change, with the workloads that depend on them
//	debounce    gathers the changes of a workload (pending.go)
//	settling    keeps the changes of which a workload seems to need nothing, until it is quiet
//	dispatcher  decides what is due (decisions.go), starts its patch, and takes the result (completion.go)
//	admission   what a roll has to wait for: a pace, Reloader (reloader.go), new files, slots, others of the namespace
//	orders      takes the snapshots from which internal/plan decides who of a namespace waits for whom
//	patcher     sends the patch of a task, and asks its pods to reload before (inplace.go)
//	rollouts    follows a rollout to its end; resume.go and resumeoutcomes.go continue with those of an earlier leader
//	notes       writes on workloads, without rolling them, what the next leader must find there (records.go, reverts.go)
//	outbox      publishes outcomes; kubeevents.go writes them as Kubernetes Events
//	forcesync   syncs the ExternalSecrets that read a changed secret in a store
//
// Nothing else reads changes from the stream. state.go and internal/inventory are kept up to date in and between terms, and report changes to
// dirty.go.
//
// Terms: a workload with undecided changes is pending, and is gathered, held or due; a task is its patch; a rollout lasts from the patch until the
// new pods are ready; an outcome is the reported result.
package actuate
