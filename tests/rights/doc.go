// Package rights has what the manifests of deploy let the programs do, and what each of these rights is for. It starts no server: tests/install shows
// the rights in use.
package rights
