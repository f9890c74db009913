// Package testbed runs a real Kubernetes control plane for tests, benchmarks and the demo: etcd, the API server, the
// controller manager, the scheduler and kwok, whose nodes run no containers but whose pods become ready as real ones
// do.
//
// Beside it run, for those who ask, a secret store ([StartStore]), the External Secrets Operator
// ([ControlPlane.StartExternalSecrets]), cert-manager's controllers ([ControlPlane.StartCertManager]), and Flux's
// ([ControlPlane.StartFlux]) with git repositories for it ([ServeGit]), all of them the real ones.
//
// The servers are built from their own Go modules (see tests/tools) the first time they are wanted, and kept in the
// user's cache folder, one folder per server and version. That takes about six minutes for a control plane, and fourteen
// for the others, on two cores, once; "go run ./tests/testbed/cmd/build" does it ahead of the tests. KUBEBUILDER_ASSETS names a
// folder of ready-made binaries, which are taken in preference where they are there. The secret store is Vault, for OpenBao
// is no module that could be built; where BAO_BIN names a binary of OpenBao, that is taken.
//
// What is promised: a control plane listens on loopback only, nothing of it outlives the process that started it (on
// Linux: however that process ends), and two control planes, in one process or in two, do not disturb each other.
// What is not: the data is not flushed to disk, so a machine that crashes loses it, and the credentials are for tests
// only.
//
// Programs under test are built with [BuildProgram] and run with [StartProcess] or [RunProcess], each with the rights
// of its own service account ([ControlPlane.ServiceAccountKubeconfig]) and no others. Every request that any of them
// makes is in the audit log ([ControlPlane.AuditSince]).
package testbed
