// Package kube has what all programs need to use the API server: the kubeconfig and clients, reflectors, waiting for a CRD to be installed, first
// lists, errors about missing permissions, when to retry a patch, the election of a leader, Kubernetes Events, and the admission policies that
// confine an installation.
//
// It also reads what people configure: strict YAML files ([DecodeStrict]), paths of fields ([FieldPath]), and regular expressions, whose size is
// bounded ([ParseExpression]).
//
// It imports no other package of this module, so that every package can use it.
package kube
