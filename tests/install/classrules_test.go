package install

import (
	"slices"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testbed/build"
)

// classNeeds has a row for each right of deploy/components/secret-provider-classes.
func classNeeds() []need {
	const group = ".secrets-store.csi.x-k8s.io"
	told := func(b *bench) bool {
		return b.isTold(events.Source{Kind: events.KindSecretProviderClass, Namespace: b.namespace, Name: "mounted"})
	}
	return slices.Concat(
		reads(watcherAccount, "secretproviderclasses"+group, "what is mounted is reported", told),
		reads(watcherAccount, "secretproviderclasspodstatuses"+group, "what is mounted is reported", told),
	)
}

// classScene is the shop with a SecretProviderClass, which no driver takes care of.
func classScene() scene {
	return shopScene().with("testdata/secretproviderclass.yaml", watcherAccount, "--sources", "secret,configmap,secretproviderclass")
}

func TestEachRuleOfTheSecretsStoreDriverIsNeeded(t *testing.T) {
	t.Parallel()
	if err := plane.ApplyKindsOf(t.Context(), build.SecretsStore); err != nil {
		t.Fatal(err)
	}
	eachIsNeeded(t, classScene(), classNeeds(), rulesOf(t, "base/rbac.yaml", "components/secret-provider-classes/watcher.yaml"))
}
