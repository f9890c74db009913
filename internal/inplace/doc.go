// Package inplace asks the pods of a workload to reload. It lists them from the API server, and calls each of them at its own
// address. The requests have no content, and nothing of the answers is used except their status.
package inplace
