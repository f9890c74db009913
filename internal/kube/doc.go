// Package kube contains what all programs need to use the API server: the kubeconfig and clients, reflectors, the wait for a CRD, first lists, errors
// about missing permissions, delays between patches, the election of a leader, Kubernetes Events, and the admission policies that confine an
// installation.
//
// It also reads configuration: strict YAML files ([DecodeStrict]), paths of fields ([FieldPath]), and regular expressions of bounded size
// ([ParseExpression]).
//
// It imports no other package of this module, so that every package can use it.
package kube
