package install

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
)

// storeNeeds has a row for each right of deploy/components/secret-stores.
func storeNeeds() []need {
	all := []need{
		{
			account: actuatorAccount, right: "patch externalsecrets.external-secrets.io", breaks: "an ExternalSecret is synced",
			done: synced("plain"), beside: synced("fanned-out"),
		},
		{
			account: actuatorAccount, right: "patch clusterexternalsecrets.external-secrets.io", breaks: "what a ClusterExternalSecret makes is synced",
			done: synced("fanned-out"), beside: synced("plain"),
		},
	}
	for _, custom := range []struct{ resource, breaks, secret string }{
		{"externalsecrets", "an ExternalSecret is synced", "plain"},
		{"secretstores", "what reads by a SecretStore is synced", "plain"},
		{"clustersecretstores", "what reads by a ClusterSecretStore is synced", "fanned-out"},
		{"clusterexternalsecrets", "what a ClusterExternalSecret makes is synced", "fanned-out"},
	} {
		all = append(all, reads(actuatorAccount, custom.resource+".external-secrets.io", custom.breaks, synced(custom.secret))...)
	}
	// A watcher lists them for each poll of the store, whatever the API server is like.
	for _, custom := range []struct{ resource, breaks, path string }{
		{"externalsecrets", "the paths that ExternalSecrets read are polled", "plain"},
		{"secretstores", "what is read by a SecretStore is polled", "plain"},
		{"clustersecretstores", "what is read by a ClusterSecretStore is polled", "fanned-out"},
	} {
		polled := func(b *bench) bool { return b.isTold(b.storePath(custom.path).Source()) }
		all = append(all, need{account: watcherAccount, right: "list " + custom.resource + ".external-secrets.io", breaks: custom.breaks, done: polled})
	}
	const certificates = "certificates.cert-manager.io"
	certified := func(b *bench) bool {
		return b.isTold(events.Source{Kind: events.KindCertificate, Namespace: b.namespace, Name: "web"})
	}
	all = append(all, reads(watcherAccount, certificates, "the state of a Certificate is reported", certified)...)
	const externalSecrets = "externalsecrets.external-secrets.io"
	return append(all, need{
		account: watcherAccount, right: "watch " + externalSecrets, breaks: "a change is heard of at once", done: watches(watcherAccount, externalSecrets),
	})
}

// synced reports whether External Secrets has written a Secret again. Without a request it syncs once an hour.
func synced(secret string) func(*bench) bool {
	return func(b *bench) bool {
		value, ok := b.value(b.Context(), secret)
		return ok && value != "one"
	}
}

func TestEachRuleOfTheSecretStoresIsNeeded(t *testing.T) {
	t.Parallel()
	eachIsNeeded(t, storeScene(startStore(t)), storeNeeds(),
		rulesOf(t, "base/rbac.yaml", "components/secret-stores/watcher.yaml", "components/secret-stores/actuator.yaml"))
}
