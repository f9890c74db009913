// Package inplace asks the pods of a workload to reload: it finds them at the API server, and calls each of them at its own
// address. What it says has no content, and what they answer is not read.
package inplace
