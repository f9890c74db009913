package rights

import (
	"fmt"
	"slices"
	"strings"
)

// The accounts of the programs, which are named for them, that of the Job of deploy/keys, and that of the one pod of deploy/single.
const (
	WatcherAccount  = "keyturn-watcher"
	ActuatorAccount = "keyturn-actuator"
	KeysAccount     = "keyturn-keys"
	SingleAccount   = "keyturn"
)

// need is what a manifest of deploy lets an account do.
type need struct {
	manifest, account string
	// verbs are separated by spaces. The resource is as in Permission.String: with the name of the only object, and the namespace of a Role.
	verbs, resource string
	// so is what happens by it.
	so string
}

// rights returns the rights of a row, each as Permission.String has it.
func (n need) rights() []string {
	var all []string
	for verb := range strings.FieldsSeq(n.verbs) {
		all = append(all, n.account+": "+verb+" "+n.resource)
	}
	return all
}

// Tell returns what permissions are for, one on each line.
func Tell(permissions []Permission) string {
	var lines strings.Builder
	for _, p := range permissions {
		for _, need := range needs {
			if slices.Contains(need.rights(), p.String()) {
				fmt.Fprintf(&lines, "%s (%s: %s)\n", p, need.manifest, need.so)
			}
		}
	}
	return lines.String()
}

// needs has every right that deploy grants, and what it is for. TestEachRightHasARow compares it with the manifests in both directions, and
// TestEachRightIsUsed of tests/install shows that the programs use each, so a right without a use fails. An API server that streams lists is not asked
// for any: the verb list is for those before Kubernetes 1.34.
//
// The other targets have the rights of prometheus-operator, on other kinds: tests/chart compares them with what their recipes list. A test of the
// projector takes each of its rights away.
//
//nolint:lll // A row a line, as in the tables of tests.
var needs = []need{
	{"base/rbac.yaml", WatcherAccount, "list watch", "secrets", "what reads one is rolled when it changes"},
	{"base/rbac.yaml", WatcherAccount, "list watch", "configmaps", "what reads one is rolled when it changes"},
	{"base/rbac.yaml", WatcherAccount, "get", "namespaces kube-system", "a program knows which cluster it is in"},
	{"base/rbac.yaml", ActuatorAccount, "list watch patch", "deployments.apps", "one is rolled"},
	{"base/rbac.yaml", ActuatorAccount, "list watch patch", "statefulsets.apps", "one is rolled"},
	{"base/rbac.yaml", ActuatorAccount, "list watch patch", "daemonsets.apps", "one is rolled"},
	{"base/rbac.yaml", ActuatorAccount, "list watch patch", "cronjobs.batch", "one is rolled"},
	{"base/rbac.yaml", ActuatorAccount, "create", "events", "the outcome of a change is an Event of the workload"},
	{"base/rbac.yaml", ActuatorAccount, "list watch", "namespaces", "a hold on a namespace is known"},
	{"base/rbac.yaml", ActuatorAccount, "get", "namespaces kube-system", "a program knows which cluster it is in"},
	{"base/rbac.yaml", ActuatorAccount, "list", "validatingadmissionpolicies.admissionregistration.k8s.io", "it is known whether the account is confined"},
	{"base/rbac.yaml", ActuatorAccount, "list", "validatingadmissionpolicybindings.admissionregistration.k8s.io", "it is known whether the account is confined"},
	{"base/rbac.yaml", ActuatorAccount, "create", "leases.coordination.k8s.io in keyturn-system", "the first actuator leads"},
	{"base/rbac.yaml", ActuatorAccount, "get", "leases.coordination.k8s.io keyturn-actuator in keyturn-system", "an actuator sees who leads"},
	{"base/rbac.yaml", ActuatorAccount, "update", "leases.coordination.k8s.io keyturn-actuator in keyturn-system", "the one that leads goes on leading"},
	{"base/rbac.yaml", ActuatorAccount, "get update", "leases.coordination.k8s.io keyturn-actuator-dry-run in keyturn-system", "an actuator leads a dry run"},

	{"namespaced/rbac.yaml", WatcherAccount, "list watch", "secrets in team-a", "what reads one is rolled when it changes"},
	{"namespaced/rbac.yaml", WatcherAccount, "list watch", "configmaps in team-a", "what reads one is rolled when it changes"},
	{"namespaced/rbac.yaml", ActuatorAccount, "list watch patch", "deployments.apps in team-a", "one is rolled"},
	{"namespaced/rbac.yaml", ActuatorAccount, "list watch patch", "statefulsets.apps in team-a", "one is rolled"},
	{"namespaced/rbac.yaml", ActuatorAccount, "list watch patch", "daemonsets.apps in team-a", "one is rolled"},
	{"namespaced/rbac.yaml", ActuatorAccount, "list watch patch", "cronjobs.batch in team-a", "one is rolled"},
	{"namespaced/rbac.yaml", ActuatorAccount, "create", "events in team-a", "the outcome of a change is an Event of the workload"},
	{"namespaced/rbac.yaml", ActuatorAccount, "get", "namespaces in team-a", "a hold on the namespace is known"},
	{"namespaced/rbac.yaml", ActuatorAccount, "create", "leases.coordination.k8s.io in keyturn-system", "the first actuator leads"},
	{"namespaced/rbac.yaml", ActuatorAccount, "get", "leases.coordination.k8s.io keyturn-actuator in keyturn-system", "an actuator sees who leads"},
	{"namespaced/rbac.yaml", ActuatorAccount, "update", "leases.coordination.k8s.io keyturn-actuator in keyturn-system", "the one that leads goes on leading"},
	{"namespaced/rbac.yaml", ActuatorAccount, "get update", "leases.coordination.k8s.io keyturn-actuator-dry-run in keyturn-system", "an actuator leads a dry run"},

	{"components/jobs/rbac.yaml", ActuatorAccount, "list watch", "jobs.batch", "it is known what a Job reads"},
	{"components/jobs/rbac.yaml", ActuatorAccount, "patch delete", "jobs.batch", "a Job is made anew"},
	{"components/jobs/rbac.yaml", ActuatorAccount, "create", "jobs.batch", "a Job is made anew, and a Job of a CronJob is started"},
	{"components/jobs/rbac.yaml", ActuatorAccount, "get", "jobs.batch", "a Job is made that another actuator deleted to make it anew"},
	{"components/reload-in-place/rbac.yaml", ActuatorAccount, "list", "pods", "the pods of a workload reload"},
	{"components/namespace-selector/rbac.yaml", WatcherAccount, "list watch", "namespaces", "what changes in a namespace with the label is reported"},
	{"components/argo-rollouts/rbac.yaml", ActuatorAccount, "list watch patch", "rollouts.argoproj.io", "a Rollout is rolled"},
	{"components/secret-provider-classes/watcher.yaml", WatcherAccount, "list watch", "secretproviderclasses.secrets-store.csi.x-k8s.io", "what is mounted is reported"},
	{"components/secret-provider-classes/watcher.yaml", WatcherAccount, "list watch", "secretproviderclasspodstatuses.secrets-store.csi.x-k8s.io", "what is mounted is reported"},

	// The watcher lists them for each poll of the store, whatever the API server is like.
	{"components/secret-stores/watcher.yaml", WatcherAccount, "list", "secretstores.external-secrets.io", "what is read by a SecretStore is polled"},
	{"components/secret-stores/watcher.yaml", WatcherAccount, "list", "clustersecretstores.external-secrets.io", "what is read by a ClusterSecretStore is polled"},
	{"components/secret-stores/watcher.yaml", WatcherAccount, "list watch", "externalsecrets.external-secrets.io", "the paths that they read are polled, and their state is reported"},
	{"components/secret-stores/watcher.yaml", WatcherAccount, "list watch", "certificates.cert-manager.io", "the state of a Certificate is reported"},
	{"components/secret-stores/actuator.yaml", ActuatorAccount, "list watch", "secretstores.external-secrets.io", "what reads by a SecretStore is synced"},
	{"components/secret-stores/actuator.yaml", ActuatorAccount, "list watch", "clustersecretstores.external-secrets.io", "what reads by a ClusterSecretStore is synced"},
	{"components/secret-stores/actuator.yaml", ActuatorAccount, "list watch patch", "externalsecrets.external-secrets.io", "an ExternalSecret is synced"},
	{"components/secret-stores/actuator.yaml", ActuatorAccount, "list watch patch", "clusterexternalsecrets.external-secrets.io", "what a ClusterExternalSecret makes is synced"},

	{"targets/prometheus-operator/rbac.yaml", ActuatorAccount, "list watch patch", "prometheuses.monitoring.coreos.com", "one is rolled"},
	{"targets/prometheus-operator/rbac.yaml", ActuatorAccount, "list watch patch", "alertmanagers.monitoring.coreos.com", "one is rolled"},

	{"keys/rbac.yaml", KeysAccount, "create", "secrets in keyturn-system", "there are keys"},
	{"keys/rbac.yaml", KeysAccount, "get update", "secrets keyturn-nats-ca in keyturn-system", "the CA of NATS is renewed"},
	{"keys/rbac.yaml", KeysAccount, "get update", "secrets keyturn-nats-tls in keyturn-system", "the certificate of NATS is renewed"},

	{"single/rbac.yaml", SingleAccount, "list watch", "secrets", "what reads one is rolled when it changes"},
	{"single/rbac.yaml", SingleAccount, "list watch", "configmaps", "what reads one is rolled when it changes"},
	{"single/rbac.yaml", SingleAccount, "list watch patch", "deployments.apps", "one is rolled"},
	{"single/rbac.yaml", SingleAccount, "list watch patch", "statefulsets.apps", "one is rolled"},
	{"single/rbac.yaml", SingleAccount, "list watch patch", "daemonsets.apps", "one is rolled"},
	{"single/rbac.yaml", SingleAccount, "list watch patch", "cronjobs.batch", "one is rolled"},
	{"single/rbac.yaml", SingleAccount, "create", "events", "the outcome of a change is an Event of the workload"},
	{"single/rbac.yaml", SingleAccount, "list watch", "namespaces", "a hold on a namespace is known"},
	{"single/rbac.yaml", SingleAccount, "get", "namespaces kube-system", "the program knows which cluster it is in"},
	{"single/rbac.yaml", SingleAccount, "list", "validatingadmissionpolicies.admissionregistration.k8s.io", "it is known whether the account is confined"},
	{"single/rbac.yaml", SingleAccount, "list", "validatingadmissionpolicybindings.admissionregistration.k8s.io", "it is known whether the account is confined"},
	{"single/rbac.yaml", SingleAccount, "create", "leases.coordination.k8s.io in keyturn-system", "the first one leads"},
	{"single/rbac.yaml", SingleAccount, "get", "leases.coordination.k8s.io keyturn-actuator in keyturn-system", "it sees who leads"},
	{"single/rbac.yaml", SingleAccount, "update", "leases.coordination.k8s.io keyturn-actuator in keyturn-system", "the one that leads goes on leading"},
	{"single/rbac.yaml", SingleAccount, "get update", "leases.coordination.k8s.io keyturn-actuator-dry-run in keyturn-system", "it leads a dry run"},
	{"single/rbac.yaml", SingleAccount, "create", "secrets in keyturn-system", "there are keys"},
	{"single/rbac.yaml", SingleAccount, "get", "secrets keyturn-fingerprint-key in keyturn-system", "fingerprints are by the key that is there"},
	{"single/rbac.yaml", SingleAccount, "get", "secrets keyturn-nats-reader in keyturn-system", "people read the streams with the key that is there"},
	{"single/rbac.yaml", SingleAccount, "get", "secrets keyturn-nats-storage in keyturn-system", "the streams are decrypted with the key that is there"},
}
