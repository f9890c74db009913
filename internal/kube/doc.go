// Package kube is what the programs do against the API server, whatever they want of it: load a kubeconfig, build clients, wait for
// a CRD to be installed, and name a missing permission.
//
// It imports no other package of this module, so that sources and actuate can both use it.
package kube
