package install

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

// fluxInstallation is an installation by the operator's repository.
type fluxInstallation struct {
	*testing.T
	*fleet
	*installation
	// folder is the operator's choice in deploy/flux.
	folder string
}

// keyturnOverlay is everything that an operator commits. YAML would take the name of the cluster for a number. The Flux timeouts are shorter
// than most operators want.
const keyturnOverlay = `
resources: ["URL//deploy/flux/FOLDER?ref=main", "URL//deploy/flux/monitoring?ref=main"]
patches:
  - target: {kind: GitRepository}
    patch: |-
      - {op: replace, path: /spec/url, value: "URL"}
  - target: {kind: Kustomization, name: keyturn}
    patch: |-
      - {op: replace, path: /spec/postBuild/substitute/cluster_name, value: "42"}
      - {op: replace, path: /spec/timeout, value: 30s}
      - {op: replace, path: /spec/retryInterval, value: 1s}
`

// installed are the Kustomizations that come of it. The second depends on the first.
var installed = []string{"keyturn", "keyturn-monitoring"}

// namespaceOverlay goes on from it, where only one namespace is served.
const namespaceOverlay = `      - {op: replace, path: /spec/postBuild/substitute/namespace, value: NAMESPACE}
`

// mistake adds a wrong account to the watcher, so that its pod cannot be created. Flux gives up at once on what has failed, and
// waits at least half a minute for what has not.
const mistake = `      - op: add
        path: /spec/patches/-
        value:
          target: {kind: Deployment, name: keyturn-watcher}
          patch: |
            - {op: replace, path: /spec/template/spec/serviceAccountName, value: nobody}
            - {op: add, path: /spec/progressDeadlineSeconds, value: 1}
`

func newFluxInstallation(t *testing.T, folder, namespace string) *fluxInstallation {
	t.Helper()
	i := &fluxInstallation{T: t, fleet: newFleet(t), installation: newInstallation(t, namespace), folder: folder}
	i.namespaced = folder == "namespaced"
	i.write("shop.yaml", shop(t, namespace))
	return i
}

// overlay returns what the operator commits, with further patches of the Kustomization.
func (i *fluxInstallation) overlay(further string) {
	overlay := keyturnOverlay
	if i.namespaced {
		overlay += namespaceOverlay
	}
	values := strings.NewReplacer("URL", i.keyturn.URL, "FOLDER", i.folder, "NAMESPACE", i.namespace)
	i.write("keyturn/kustomization.yaml", values.Replace(overlay+further))
}

// seesMistake commits the installation beside the workloads, with a mistake.
func (i *fluxInstallation) seesMistake() {
	i.Helper()
	i.write("kustomization.yaml", "resources: [shop.yaml, keyturn]\n")
	i.overlay(mistake)
	i.push("install Keyturn, with a mistake")
	i.eventually("flux sees that the installation is broken", func(ctx context.Context) bool {
		ready := i.condition(ctx, "keyturn")
		return ready.Status == metav1.ConditionFalse && ready.Reason == "HealthCheckFailed" &&
			strings.Contains(ready.Message, "Deployment/keyturn-system/keyturn-watcher")
	})
	i.eventually("keyturn-monitoring waits for keyturn", func(ctx context.Context) bool {
		return i.condition(ctx, "keyturn-monitoring").Reason == "DependencyNotReady"
	})
}

// install commits the installation beside the workloads.
func (i *fluxInstallation) install() {
	i.Helper()
	i.write("kustomization.yaml", "resources: [shop.yaml, keyturn]\n")
	i.overlay("")
	i.push("install Keyturn")
	for _, name := range installed {
		i.eventually(name+" is ready", func(ctx context.Context) bool { return i.condition(ctx, name).Status == metav1.ConditionTrue })
	}
}

func TestFluxInstallsKeyturnForACluster(t *testing.T) { install(t, "cluster", "shop") }

func TestFluxInstallsKeyturnForANamespace(t *testing.T) { install(t, "namespaced", "openstack-system") }

// install installs Keyturn from a folder of deploy/flux, checks that it works, and uninstalls it.
func install(t *testing.T, folder, namespace string) {
	testkit.Must(t, plane.Apply(t.Context(), "testdata/monitoring-crds.yaml"))
	i := newFluxInstallation(t, folder, namespace)
	i.prepare()
	i.part("flux applies the workloads", func() {
		i.write("kustomization.yaml", "resources: [shop.yaml]\n")
		i.push("the workloads")
	})
	i.volume()
	if folder == "cluster" { // Once is enough: it takes seconds.
		i.part("flux sees a mistake", i.seesMistake)
	}
	i.part("flux installs Keyturn", i.install)
	begin := i.auditEnd()
	i.part("what the pods run becomes ready", i.start)
	for _, scenario := range i.scenarios() {
		i.part(scenario.name, scenario.play)
	}
	i.part("the network policies let through what there is, and no more", i.keepsToItsPolicies)
	i.part("flux and Keyturn do not fight over a workload", i.sharesWorkloadsWithFlux)
	i.part("a second reconciliation changes nothing", i.changesNothingAgain)
	i.part("each program asks for what its role has, and uses all of it", func() { i.usesItsRole(begin) })
	if folder == "cluster" && testkit.IsNightly() {
		i.part("flux goes on from a registry, and installs what is pushed there", i.goesOnFromARegistry)
	}
	i.part("what is taken out of the repository is taken out of the cluster, but for the keys and the stream", i.isPruned)
}
