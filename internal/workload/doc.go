// Package workload reads the workloads that Keyturn can roll: what their pods read, what they ask to be rolled for, what they
// were last rolled for, and how far their rollout is. It also makes the one patch that is ever sent to them.
//
// A Workload is an immutable snapshot that shares nothing with the object it was read from. Nothing here waits, logs or keeps
// state; only Objects talks to the API server.
//
// # Kinds
//
// Everything that differs between kinds is in one value of type Kind: how its objects are listed, watched and patched, where
// the pod template is, how a change of the template causes the pods to be replaced (its strategy), and how far a rollout is.
// No other code knows a kind by its name. To add a kind:
//
//  1. Make a file with one Kind, and list it in BuiltIn.
//  2. If its API is not part of client-go, add the client that it needs to Clients, and implement Objects for it.
//  3. If its pods are not replaced by an annotation on the pod template, add a strategy that says what replaces them, and where
//     the revision is then found.
//
// A kind that comes from configuration is such a value too, made at run time and appended to the table: see TargetConfig.
package workload
