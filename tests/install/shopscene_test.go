package install

import (
	"testing"

	"github.com/keyturn/keyturn/tests/rights"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// shopScene is testdata/shop.yaml, whose Secret and ConfigMap change.
func shopScene() scene {
	return scene{
		prepare: func(b *bench) {
			b.args[rights.WatcherAccount] = []string{"--namespaces", b.namespace}
			b.prepare()
			b.apply()
		},
		change: func(b *bench) {
			b.secret("db", "two")
			b.configMap("app", "two")
		},
	}
}

// with is the scene with the objects of a file, and with arguments for the program that has an account.
func (s scene) with(file, account string, args ...string) scene {
	prepare := s.prepare
	s.prepare = func(b *bench) {
		prepare(b)
		b.applyFile(file)
		b.args[account] = append(b.args[account], args...)
	}
	return s
}

// componentScene is the shop with Jobs and with a workload that reloads in place, and with a watcher that goes by the labels of namespaces. An
// actuator sees the shadow in testdata/jobs.yaml at once, and restores its Job after the quarter of a minute that another one could still take.
func componentScene() scene {
	scene := shopScene().
		with("testdata/jobs.yaml", rights.ActuatorAccount, "--jobs", "start,recreate").
		with("testdata/inplace.yaml", rights.ActuatorAccount, "--reload-in-place", "1ms")
	prepare := scene.prepare
	scene.prepare = func(b *bench) {
		prepare(b)
		b.args[rights.WatcherAccount] = []string{"--namespace-selector", "kubernetes.io/metadata.name=" + b.namespace}
	}
	return scene
}

// kindsScene is the shop with a Rollout and a SecretProviderClass, which nobody takes care of.
func kindsScene(t *testing.T) scene {
	t.Helper()
	for operator, kinds := range map[string][]string{build.ArgoRollouts: {"Rollout"}, build.SecretsStore: nil} {
		testkit.Must(t, plane.ApplyKindsOf(t.Context(), operator, kinds...))
	}
	return shopScene().
		with("testdata/rollout.yaml", rights.ActuatorAccount, "--workload-kinds", "deployment,statefulset,daemonset,cronjob,rollout").
		with("testdata/secretproviderclass.yaml", rights.WatcherAccount, "--sources", "secret,configmap,secretproviderclass")
}

// targetScene is the shop with the custom resources of a recipe, which nobody takes care of.
func targetScene(t *testing.T) scene {
	t.Helper()
	testkit.Must(t, plane.ApplyKindsOf(t.Context(), build.PrometheusOperator, "Prometheus", "Alertmanager"))
	return shopScene().with("testdata/prometheus.yaml", rights.ActuatorAccount, "--targets-config", "../../deploy/targets/prometheus-operator/prometheus-operator.yaml")
}
