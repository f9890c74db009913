package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// fleetOverlay is all that an operator commits for a cluster of a fleet, and spokeOverlay goes on from it for one that is not the hub's. Flux
// is to have less patience than most operators want.
const (
	fleetOverlay = `
resources: ["URL//deploy/flux/FOLDER?ref=main"]
patches:
  - target: {kind: GitRepository}
    patch: |-
      - {op: replace, path: /spec/url, value: "URL"}
  - target: {kind: Kustomization, name: keyturn}
    patch: |-
      - {op: replace, path: /spec/retryInterval, value: 1s}
`
	spokeOverlay = `      - {op: replace, path: /spec/postBuild/substitute/cluster_name, value: prod-eu}
      - op: add
        path: /spec/patches/-
        value:
          target: {kind: ConfigMap, name: keyturn}
          patch: |
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: keyturn}
            data: {NATS_HUB: "tls://ADDRESS"}
`
)

// natsKustomization is the hub's Kustomization for NATS, which runs outside the cluster here.
const natsKustomization = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: nats, namespace: flux-system}
spec:
  interval: 1h
  retryInterval: 1s
  prune: true
  sourceRef: {kind: GitRepository, name: fleet}
  path: ./nats
`

// One cluster is first a spoke and then the hub's own, for it has one keyturn-system.
func TestFluxInstallsTheClustersOfAFleet(t *testing.T) {
	h := newHub(t, "hub", "prod-eu:leaf")
	i := newFluxInstallation(t, "fleet/spoke-a", "payments")
	i.volume()
	t.Cleanup(i.clear)
	i.part("flux installs a spoke while the hub is away", func() { i.installSpoke(h) })
	i.part("its programs become ready without the hub", i.start)
	i.part("a change rolls what reads it without the hub", func() { i.rollsReaders("two") })
	i.part("the hub learns of it when it is there", func() {
		h.start("prod-eu")
		h.declare("hub", "hub-changes", "hub-history", "hub-deadletters")
		h.declareFleet()
		for _, event := range h.tells(i.namespace, "prod-eu secret/db changed", "prod-eu deployment/web completed") {
			if !strings.HasPrefix(event, "prod-eu ") {
				t.Errorf("FLEET has %q, which no other cluster can have said", event)
			}
		}
	})
	i.part("the network policies let through the way to the hub", func() { i.reaches(i.podOfTheActuator(), "keyturn-actuator", h, 7422) })
	i.part("the spoke is ready", i.isReady)
	i.part("flux takes the spoke away", i.isTakenOut)

	i.folder = "fleet/hub"
	i.kubelet = newKubelet(t, programs.SystemNamespace)
	i.kubelet.nats = h.Servers[0].Address()
	i.part("flux installs the hub's own cluster when its NATS is ready, and not before", func() { i.installHub(h) })
	i.part("its programs become ready on the hub", i.start)
	i.part("a change rolls what reads it on the hub", func() { i.rollsReaders("three") })
	i.part("the hub tells of both clusters", func() {
		h.tells(i.namespace, "prod-eu secret/db changed", "hub secret/db changed", "hub deployment/web completed")
	})
	i.part("the network policies let through the way to the NATS", func() {
		i.reaches(i.podOfTheActuator(), "keyturn-actuator", h, 4222)
		i.reaches([]*programs.Program{i.watcher}, "keyturn-watcher", h, 4222)
	})
	i.part("the hub's own is ready", i.isReady)
	i.part("flux takes the hub's own away", i.isTakenOut)
}

// installSpoke commits the workloads and what makes the cluster a spoke, and brings the Secret that is the operator's.
func (i *fluxInstallation) installSpoke(h *hub) {
	i.Helper()
	i.prepare()
	i.commitFleet(spokeOverlay, "ADDRESS", h.Servers[0].LeafAddress())
	i.operatorsSecret("keyturn-nats-leaf", map[string]string{
		"leaf-key.conf": filepath.Join(h.Dir, "prod-eu", "leaf-key.conf"), "ca.crt": h.Certificates.CA,
	})
	i.hasPods()
}

// installHub commits what makes the cluster the hub's own, and the NATS after it.
func (i *fluxInstallation) installHub(h *hub) {
	i.Helper()
	waits := func(why string) {
		i.Helper()
		i.eventually("keyturn waits, for nats is "+why, func(ctx context.Context) bool {
			ready := i.condition(ctx, "keyturn")
			return ready.Reason == "DependencyNotReady" && strings.Contains(ready.Message, "nats") && strings.Contains(ready.Message, why)
		})
	}
	i.commitFleet("")
	waits("not found")
	i.write("nats.yaml", natsKustomization)
	i.write("kustomization.yaml", "resources: [shop.yaml, keyturn, nats.yaml]\n")
	i.push("the NATS, without its folder")
	waits("not ready")
	if applied := i.inventory("keyturn"); len(applied) > 0 {
		i.Errorf("flux has applied %d objects while keyturn waits", len(applied))
	}
	i.write("nats/nats.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nats, namespace: flux-system}\n")
	i.push("the NATS")
	for _, program := range []string{"watcher", "actuator"} {
		i.operatorsSecret("keyturn-nats-"+program, map[string]string{program + ".nk": h.Seed("hub-" + program), "ca.crt": h.Certificates.CA})
	}
	i.hasPods()
}

// hasPods waits until there are pods of all programs. Flux looks every five seconds whether they are ready, and pods need not wait for that.
func (i *fluxInstallation) hasPods() {
	i.Helper()
	for _, program := range []string{"keys", "watcher", "actuator"} {
		i.eventually("there is a pod of the "+program, func(context.Context) bool { return len(i.kubelet.pods(program)) > 0 })
	}
}

func (i *fluxInstallation) isReady() {
	i.Helper()
	i.eventually("keyturn is ready", func(ctx context.Context) bool { return i.condition(ctx, "keyturn").Status == metav1.ConditionTrue })
}

// isTakenOut checks that nothing is left of an installation that was removed from the repository, except an empty namespace.
func (i *fluxInstallation) isTakenOut() {
	i.Helper()
	i.watcher.StopIn(i.T, testkit.Patience)
	i.actuator.StopIn(i.T, testkit.Patience)
	i.areGone(i.takeOut())
	for _, program := range []string{"keys", "watcher", "actuator"} { // The next installation must not take a pod of this one for its own.
		i.eventually("there is no pod of the "+program, func(context.Context) bool { return len(i.kubelet.pods(program)) == 0 })
	}
	i.clear()
}

// clear removes what operators bring, and what programs have made.
func (i *fluxInstallation) clear() {
	ctx, stop := running.WithTimeout(context.WithoutCancel(i.Context()), testkit.Patience)
	defer stop()
	core, now, all := i.kube.CoreV1(), metav1.DeleteOptions{}, metav1.ListOptions{}
	err := errors.Join(
		core.Secrets(programs.SystemNamespace).DeleteCollection(ctx, now, all),
		core.PersistentVolumeClaims(programs.SystemNamespace).DeleteCollection(ctx, now, all),
		i.kube.CoordinationV1().Leases(programs.SystemNamespace).DeleteCollection(ctx, now, all),
	)
	if err != nil {
		i.Error(err)
	}
}

// commitFleet commits an installation from a folder for clusters of a fleet, with more patches and their values.
func (i *fluxInstallation) commitFleet(further string, values ...string) {
	i.Helper()
	values = append(values, "URL", i.keyturn.URL, "FOLDER", i.folder)
	i.write("keyturn/kustomization.yaml", strings.NewReplacer(values...).Replace(fleetOverlay+further))
	i.write("kustomization.yaml", "resources: [shop.yaml, keyturn]\n")
	i.push("install Keyturn from " + i.folder)
}

// operatorsSecret makes a Secret of files, as `kubectl create secret generic --from-file` does, as soon as there is the namespace for it.
func (i *fluxInstallation) operatorsSecret(name string, files map[string]string) {
	i.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{}}
	for key, path := range files {
		secret.Data[key] = []byte(testkit.ReadFile(i.T, path))
	}
	i.eventually("the Secret "+name+" can be made", func(ctx context.Context) bool {
		_, err := i.kube.CoreV1().Secrets(programs.SystemNamespace).Create(ctx, secret, metav1.CreateOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			i.Fatal(err)
		}
		return err == nil
	})
}

// reaches holds that a program of a pod is connected to the hub, on a port that is let through.
func (i *fluxInstallation) reaches(pod []*programs.Program, name string, h *hub, port int) {
	i.Helper()
	hubPorts := map[int]bool{}
	for _, server := range h.Servers {
		for _, address := range []string{server.Address(), server.LeafAddress()} {
			hubPorts[number(after(address), 10)] = true
		}
	}
	connected := false
	for _, program := range pod {
		connected = connected || slices.ContainsFunc(i.sockets(program.Pid()), func(s socket) bool { return hubPorts[s.remote] })
	}
	if !connected {
		i.Errorf("%s is not connected to the hub", name)
	}
	if !letsThrough(i.policies(), name, traffic{port: port}) {
		i.Errorf("the policies of %s do not let through port %d", name, port)
	}
}

func TestSpokesDifferByTheirNamesAlone(t *testing.T) {
	t.Parallel()
	rendered := map[string]string{}
	for _, name := range []string{"spoke-a", "spoke-b"} {
		out, err := testbed.Kustomize(t.Context(), os.Stderr, filepath.Join("../../deploy/flux/fleet", name))
		testkit.Must(t, err)
		if strings.Count(string(out), name) != 1 {
			t.Errorf("%s: want its name once in:\n%s", name, out)
		}
		rendered[name] = strings.ReplaceAll(string(out), name, "NAME")
	}
	if rendered["spoke-a"] != rendered["spoke-b"] {
		t.Errorf("they differ:\n%s\n%s", rendered["spoke-a"], rendered["spoke-b"])
	}
}
