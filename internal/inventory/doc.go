// Package inventory knows the workloads of a cluster, and what their namespaces say about them. Reflectors fill it, and it answers questions about
// them without a request to the API server.
//
// Guarantee: it knows what the API server has, as soon as a watch shows that, or within half a minute where workloads may only be listed. An older
// state of a workload never replaces a newer one. Which write has changed a pod template, and since when a workload may have wanted a source, is
// known where a watch has shown every write. A list may be the result of many writes: what it leaves open counts as not known. Nothing is written
// down, so after a restart everything is listed again.
//
// The record of a workload is what the actuator wrote last. If someone else removes the annotation, or brings back or copies an earlier one, the
// index remembers the record for as long as the workload exists.
//
// The index is filled by its methods Written, Listed, Forget, Serve and Unserve, and Namespaces by Set. Reflectors call them, and so do tests of
// other packages, which have no API server.
//
// Concurrency: Index and Namespaces are safe for concurrent use. A workload from the index must not be changed. The index does not change it either,
// but replaces it.
//
// Failure: what cannot be listed stays as it was known. When the API server does not serve a kind any more, its workloads stay, too, and
// Index.IsUnserved says for a day that nobody knows what has become of them. A hold or a window of a namespace does not end because the permission to
// read the namespace did.
package inventory
