//go:build tools

package main

// kubectl is a program of its own, of the same module. This file is never compiled.
import _ "k8s.io/kubernetes/cmd/kubectl"
