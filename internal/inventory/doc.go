// Package inventory keeps the workloads of a cluster and the settings of their namespaces in memory. Reflectors fill it, so that a look-up takes no
// request to the API server.
//
// Guarantee: it shows every state of the API server as soon as a watch does, or within half a minute if workloads may only be listed. An older state
// of a workload never replaces a newer one. If a watch has shown every write, it knows which write changed a pod template, and since when a workload
// may have wanted a source. A list may be the result of many writes, so these remain unknown after it. Nothing is stored: after a restart, everything
// is listed again.
//
// The record of a workload is the last one that the actuator wrote. If another client removes the annotation, or restores or copies an earlier one,
// the index remembers the record for as long as the workload exists.
//
// Written, Listed, Forget, Serve and Unserve fill the Index, and Set fills the Namespaces. Reflectors call them, and so do tests of other packages,
// which have no API server.
//
// Concurrency: Index and Namespaces are safe for concurrent use. A workload from the index must not be changed; the index replaces it by a new one.
//
// Failure: if a list fails, its last result stays. If the API server no longer serves a kind, its workloads stay, too, and Index.IsUnserved reports
// for a day that their state is unknown. A hold or a window of a namespace remains if the permission to read the namespace is lost.
package inventory
