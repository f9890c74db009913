// Package workload reads the workloads that Keyturn can roll: the sources that their pods read, the changes that they opt in to, the changes that
// they were last rolled for, and the progress of their rollout. It also creates the only patch that is ever sent to them.
//
// A Workload is an immutable snapshot that shares nothing with its object. Nothing here waits, logs or keeps state; only Objects talks to the API
// server.
//
// # Kinds
//
// A value of type Kind contains all differences between kinds: how objects are listed, watched and patched, where the pod template is, how pods are
// replaced (the strategy), and how the progress of a rollout is read. No other code knows a kind by its name. To add a kind:
//
//  1. Make a file with one Kind, and list it in BuiltIn.
//  2. If its API is not part of client-go, add the client that it needs to Clients, and implement Objects for it.
//  3. If an annotation on the pod template does not replace the pods, add a strategy that does, and that finds the revision.
//
// A kind from configuration is a Kind, too, created at startup and appended to the table: see TargetConfig.
package workload
