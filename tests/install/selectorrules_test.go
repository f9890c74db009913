package install

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
)

// selectorNeeds has a row for each right of deploy/components/namespace-selector.
func selectorNeeds() []need {
	told := func(b *bench) bool {
		return b.isTold(events.Source{Kind: events.KindSecret, Namespace: b.namespace, Name: "db"})
	}
	return reads(watcherAccount, "namespaces", "what changes in a namespace with the label is reported", told)
}

// selectorScene is the shop, with a watcher that goes by the labels of namespaces.
func selectorScene() scene {
	scene := shopScene()
	prepare := scene.prepare
	scene.prepare = func(b *bench) {
		prepare(b)
		b.args[watcherAccount] = []string{"--namespace-selector", "kubernetes.io/metadata.name=" + b.namespace}
	}
	return scene
}

func TestEachRuleOfTheNamespaceSelectorIsNeeded(t *testing.T) {
	t.Parallel()
	eachIsNeeded(t, selectorScene(), selectorNeeds(), rulesOf(t, "base/rbac.yaml", "components/namespace-selector/rbac.yaml"))
}
