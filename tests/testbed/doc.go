// Package testbed runs a real Kubernetes control plane for tests, benchmarks and the demo: etcd, the API server and the controllers of workloads,
// with a simulated node, which runs no containers but whose pods become ready like real ones.
//
// On request, it also runs the External Secrets Operator ([ControlPlane.StartExternalSecrets]) and the controllers of cert-manager
// ([ControlPlane.StartCertManager]), Argo Rollouts ([ControlPlane.StartArgoRollouts]) and Flux ([ControlPlane.StartFlux]), with Git
// repositories for the latter ([NewRepository]). All of them are the real ones. Package secretstore runs the secret store.
//
// Package build builds the servers from their own Go modules (see tests/tools) when they are first needed, and keeps them in the user's
// cache folder, one folder per server and version; "make servers" does it before the tests. The servers of the control plane are one binary,
// called by their names, because they share most of their packages. If the folder that KUBEBUILDER_ASSETS names has a binary, that is used instead.
// The secret store is Vault, because OpenBao is not a module that could be built; to use OpenBao, set BAO_BIN to the path of its binary.
//
// Guarantees: a control plane listens on loopback only; nothing of it outlives the process that started it (on Linux, however
// that process ends); two control planes, in one process or in two, do not disturb each other. Not guaranteed: data is not
// flushed to disk, so a machine that crashes loses it, and the credentials are for tests only.
//
// [build.Program] builds programs under test, and [process.Start] and [process.Run] run them, each with only the permissions
// of its own service account ([ControlPlane.ServiceAccountKubeconfig]). The audit log has every request that they make
// ([ControlPlane.AuditSince]), and etcd every version of every object that they have written ([ControlPlane.Revisions]).
//
// The API server and etcd can be killed and started again, and [process.Process.Suspend] suspends any of the servers for a
// while.
package testbed
