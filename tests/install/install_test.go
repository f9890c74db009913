package install

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
)

// installation is Keyturn in the cluster, by the operator's repository, and as processes.
type installation struct {
	*fleet
	workloads
	kubelet *kubelet
	// folder is what the operator has chosen of deploy/flux.
	folder            string
	watcher, actuator *programs.Program
}

// keyturnOverlay is all that an operator commits. Flux is told to have less patience than most operators want.
const keyturnOverlay = `
resources: ["URL//deploy/flux/FOLDER?ref=main", "URL//deploy/flux/monitoring?ref=main"]
patches:
  - target: {kind: GitRepository}
    patch: |-
      - {op: replace, path: /spec/url, value: "URL"}
  - target: {kind: Kustomization, name: keyturn}
    patch: |-
      - {op: replace, path: /spec/postBuild/substitute/cluster_name, value: prod-eu}
      - {op: replace, path: /spec/timeout, value: 30s}
      - {op: replace, path: /spec/retryInterval, value: 1s}
`

// installed are the Kustomizations that come of it. The second depends on the first.
var installed = []string{"keyturn", "keyturn-monitoring"}

// namespaceOverlay goes on from it, where only one namespace is served.
const namespaceOverlay = `      - {op: replace, path: /spec/postBuild/substitute/namespace, value: NAMESPACE}
`

// mistake goes on from it: the watcher has an account that is not there, so that its pod cannot be made. Flux gives up at once what has
// failed, and waits for half a minute at least for what has not.
const mistake = `      - op: add
        path: /spec/patches/-
        value:
          target: {kind: Deployment, name: keyturn-watcher}
          patch: |
            - {op: replace, path: /spec/template/spec/serviceAccountName, value: nobody}
            - {op: add, path: /spec/progressDeadlineSeconds, value: 1}
`

func newInstallation(t *testing.T, folder, namespace string) *installation {
	t.Helper()
	i := &installation{
		fleet: newFleet(t), kubelet: newKubelet(t, programs.SystemNamespace), folder: folder,
		workloads: workloads{t, kubernetes.NewForConfigOrDie(plane.Config()), namespace},
	}
	i.write("shop.yaml", shop(t, namespace))
	return i
}

// overlay is what the operator commits, with more patches of the Kustomization.
func (i *installation) overlay(further string) {
	overlay := keyturnOverlay
	if i.folder == "namespaced" {
		overlay += namespaceOverlay
	}
	values := strings.NewReplacer("URL", i.keyturn.URL, "FOLDER", i.folder, "NAMESPACE", i.namespace)
	i.write("keyturn/kustomization.yaml", values.Replace(overlay+further))
}

// volume makes a volume that the actuator's claim can have.
func (i *installation) volume() {
	i.Helper()
	volumes := i.kube.CoreV1().PersistentVolumes()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk-" + i.namespace},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none"}},
		},
	}
	if _, err := volumes.Create(i.Context(), volume, metav1.CreateOptions{}); err != nil {
		i.Fatal(err)
	}
	i.Cleanup(func() {
		if err := volumes.Delete(context.WithoutCancel(i.Context()), volume.Name, metav1.DeleteOptions{}); err != nil {
			i.Error(err)
		}
	})
}

// seesMistake commits the installation beside the workloads, with a mistake.
func (i *installation) seesMistake() {
	i.Helper()
	i.write("kustomization.yaml", "resources: [shop.yaml, keyturn]\n")
	i.overlay(mistake)
	i.push("install Keyturn, with a mistake")
	i.eventually("flux sees that the installation is broken", func(ctx context.Context) bool {
		ready := i.condition(ctx, "keyturn")
		return ready.Status == metav1.ConditionFalse && ready.Reason == "HealthCheckFailed" &&
			strings.Contains(ready.Message, "Deployment/keyturn-system/keyturn-watcher")
	})
	if dependent := i.condition(i.Context(), "keyturn-monitoring"); dependent.Reason != "DependencyNotReady" {
		i.Errorf("keyturn-monitoring: got %q: %s, want that it waits for keyturn", dependent.Reason, dependent.Message)
	}
}

// install commits the installation beside the workloads.
func (i *installation) install() {
	i.Helper()
	i.write("kustomization.yaml", "resources: [shop.yaml, keyturn]\n")
	i.overlay("")
	i.push("install Keyturn")
	for _, name := range installed {
		i.eventually(name+" is ready", func(ctx context.Context) bool { return i.condition(ctx, name).Status == metav1.ConditionTrue })
	}
}

// start runs what the pods run: the Job, and then both programs.
func (i *installation) start() {
	i.Helper()
	i.kubelet.await(i.kubelet.run("keys"))
	i.actuator = i.kubelet.runReady("actuator")
	i.watcher = i.kubelet.runReady("watcher")
}

func TestFluxInstallsKeyturnForACluster(t *testing.T) { install(t, "cluster", "shop") }

func TestFluxInstallsKeyturnForANamespace(t *testing.T) { install(t, "namespaced", "openstack-system") }

// install installs Keyturn from a folder of deploy/flux, has it do what it is for, and takes it away again.
func install(t *testing.T, folder, namespace string) {
	if err := plane.Apply(t.Context(), "testdata/monitoring-crds.yaml"); err != nil {
		t.Fatal(err)
	}
	i := newInstallation(t, folder, namespace)
	i.part("flux applies the workloads", func() {
		// The namespace of an installation for one is there before.
		i.write("kustomization.yaml", "resources: [shop.yaml]\n")
		i.push("the workloads")
	})
	i.secret("db", "one")
	i.configMap("app", "one")
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
	i.part("what is taken out of the repository is taken out of the cluster", i.isPruned)
}

// part is a step with a name. Those after one that failed would only say so again.
func (i *installation) part(name string, play func()) {
	i.Helper()
	start := time.Now()
	play()
	i.Logf("%s: %.1fs", name, time.Since(start).Seconds())
	if i.Failed() {
		i.Fatalf("it is not so that %s", name)
	}
}
