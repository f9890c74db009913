// Package kube has what all programs need to use the API server: kubeconfig and clients, reflectors, waiting for a CRD to be installed,
// errors about missing permissions, when to retry a patch, and Kubernetes Events.
//
// It imports no other package of this module, so that sources, actuate and project can use it.
package kube
