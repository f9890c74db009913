// Package chart holds the Helm chart to the manifests of kustomize: both are rendered as their users do, by helm and by
// kubectl kustomize, and compared object for object.
package chart
