package install

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

// What is done by hand here is what docs/how-to/install.md and docs/how-to/upgrade.md say.
func TestHelmInstallsUpgradesAndRemovesKeyturn(t *testing.T) {
	r := newRelease(t)
	r.prepare()
	r.apply()
	r.volume()
	r.part("helm installs Keyturn", r.install)
	r.part("the namespace can be labelled as restricted", r.restrict)
	begin := r.auditEnd()
	r.part("what the pods run becomes ready", r.start)
	for _, scenario := range r.scenarios() {
		r.part(scenario.name, scenario.play)
	}
	r.part("the network policies let through what there is, and no more", r.keepsToItsPolicies)
	r.part("helm test finds that it works", r.tests)
	r.part("each program asks for what its role has, and uses all of it", func() { r.usesItsRole(begin) })
	r.part("an upgrade to what is there changes nothing", r.upgradesToTheSame)
	r.part("an upgrade with a wrong value is refused, and changes nothing", r.refusesAWrongValue)
	r.part("an upgrade replaces the programs and leaves the keys", r.upgradesPrograms)
	r.part("what is uninstalled is gone, but for the keys and the stream", r.uninstalls)
	r.part("the next installation goes on with them", r.goesOn)
}

// install is what docs/how-to/install.md says, and waits for pods.
func (r *release) install() {
	r.Helper()
	r.helm(slices.Concat([]string{"install", "keyturn", chart, "--create-namespace"}, operatorsValues, untilReady)...)
	r.eventuallyPods("keys", 1, "v0.1.0")
}

// upgrade is what docs/how-to/upgrade.md says, with more values, and waits for pods.
func (r *release) upgrade(values ...string) {
	r.Helper()
	r.helm(slices.Concat([]string{"upgrade", "keyturn", chart, "--reset-then-reuse-values"}, values, untilReady)...)
}

// restrict labels the namespace. The API server looks at the pods that are there, and warns of each that it would not let in; those
// that are made from then on it refuses.
func (r *release) restrict() {
	r.Helper()
	config, warned := plane.Config(), &admission{}
	config.WarningHandler = warned
	label := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	namespaces := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces()
	if _, err := namespaces.Patch(r.Context(), programs.SystemNamespace, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
	for _, warning := range warned.warnings {
		r.Errorf("the API server warns: %s", warning)
	}
}

// tests runs helm test, with its pod's process, as which the pod ends.
func (r *release) tests() {
	r.Helper()
	done := make(chan error, 1)
	go func() {
		out, err := r.try("test", "keyturn", "--timeout", (5 * testkit.Patience).String()) // Some of what follows has a minute each.
		if err != nil {
			err = fmt.Errorf("%w:\n%s", err, out)
		}
		done <- err
	}()
	r.eventuallyPods("test", 1, "v0.1.0")
	streams := r.kubelet.run("test")
	r.kubelet.await(streams)
	if out := streams.Output(); !strings.Contains(out, "prod-eu") {
		r.Errorf("the cluster is not in\n%s", out)
	}
	r.asksWhoIsReady()
	policies := r.policies()
	for _, one := range []traffic{
		{port: 4222, peer: "keyturn-actuator"}, {port: 9440, peer: "keyturn-actuator"}, {port: 9440, peer: "keyturn-watcher"}, {port: 53},
	} {
		if !letsThrough(policies, "keyturn-test", one) {
			r.Errorf("the policies of the test do not let through %+v", one)
		}
	}
	for program, ports := range map[string][]int{"keyturn-actuator": {4222, 9440}, "keyturn-watcher": {9440}} {
		for _, port := range ports {
			if !letsThrough(policies, program, traffic{ingress: true, port: port, peer: "keyturn-test"}) {
				r.Errorf("the policies of %s do not let in the test at %d", program, port)
			}
		}
	}
	pods := r.kube.CoreV1().Pods(programs.SystemNamespace)
	testkit.Await(r.T, "the pod has ended", func(ctx context.Context) bool {
		pod, err := pods.Get(ctx, "keyturn-test", metav1.GetOptions{})
		if err != nil || pod.Status.Phase == corev1.PodPending {
			return false // The node has not seen it yet, and would start it after its end.
		}
		pod.Status.Phase = corev1.PodSucceeded
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err == nil
	})
	if err := <-done; err != nil {
		r.Error(err)
	}
	left, err := r.kube.NetworkingV1().NetworkPolicies(programs.SystemNamespace).List(r.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=test"})
	if err != nil || len(left.Items) > 0 {
		r.Errorf("after the test there are %d of its network policies, %v", len(left.Items), err)
	}
	r.eventuallyPods("test", 0, "")
}

// asksWhoIsReady runs the second container of the test's pod, with both programs and with an address of the watcher at which nobody answers.
func (r *release) asksWhoIsReady() {
	r.Helper()
	pod, before := r.kubelet.pod("test"), r.kubelet.further
	defer func() { r.kubelet.further = before }()
	pod.Spec.Containers = pod.Spec.Containers[1:]
	in := func(program string) string {
		return "keyturn-" + program + "-ready." + programs.SystemNamespace + ".svc:9440"
	}
	actuator := []string{in("actuator"), r.actuator.Address("health")}
	r.kubelet.further = slices.Concat(before, actuator, []string{in("watcher"), r.watcher.Address("health")})
	r.kubelet.await(r.kubelet.runPod(pod, "ready"))

	nobody := process.FreeAddress(r.T)
	r.kubelet.further = slices.Concat(before, actuator, []string{in("watcher"), nobody})
	pod.Spec.Containers[0].Args = append(pod.Spec.Containers[0].Args, "--wait=5s")
	dead := r.kubelet.runPod(pod, "ready")
	if err := r.kubelet.end(dead); err == nil || !strings.Contains(dead.Output(), nobody) || strings.Contains(dead.Output(), r.actuator.Address("health")) {
		r.Errorf("with a dead watcher the test ends with %v:\n%s", err, dead.Output())
	}
}

// upgradesToTheSame checks that an upgrade without a change writes nothing but its own record. The Job has expired by then.
func (r *release) upgradesToTheSame() {
	r.Helper()
	before, history := r.versions(), r.history()
	background := metav1.DeletePropagationBackground
	err := r.kube.BatchV1().Jobs(programs.SystemNamespace).DeleteCollection(r.Context(),
		metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=keyturn-keys"})
	testkit.Must(r, err)
	r.eventuallyPods("keys", 0, "")
	r.upgrade()
	if got, want := r.history(), history+1; got != want {
		r.Errorf("the release has %d revisions, want %d", got, want)
	}
	r.eventuallyPods("keys", 1, "v0.1.0")
	r.kubelet.await(r.kubelet.run("keys"))
	r.same(before)
}

func (r *release) refusesAWrongValue() {
	r.Helper()
	before, history := r.versions(), r.history()
	out, err := r.try("upgrade", "keyturn", chart, "--reset-then-reuse-values", "--set", "logFormat=yaml")
	for _, want := range []string{"/logFormat", "'json', 'text'"} {
		if err == nil || !strings.Contains(out, want) {
			r.Errorf("got %v, want %q in\n%s", err, want, out)
		}
	}
	if got := r.history(); got != history {
		r.Errorf("the release has %d revisions, want %d", got, history)
	}
	r.same(before)
}

func (r *release) upgradesPrograms() {
	r.Helper()
	kept, before := r.kept(), r.revisions()
	r.upgrade("--set", "image.tag=v0.2.0", "--set", "logLevel=debug")
	for _, program := range []string{"keys", "watcher", "actuator"} {
		r.eventuallyPods(program, 1, "v0.2.0")
	}
	r.stop()
	r.secret("db", "five")
	r.start()
	r.rolled(before, readers...)
	r.untouched(before, "api")
	if !strings.Contains(r.watcher.Output(), `"level":"DEBUG"`) {
		r.Error("the watcher does not have the level of the log that was asked for")
	}
	if got := r.kubelet.configMap("keyturn")["KEYTURN_CLUSTER"]; got != "prod-eu" {
		r.Errorf("cluster: got %q: a value of the first installation is gone", got)
	}
	if diff := cmp.Diff(kept, r.kept()); diff != "" {
		r.Errorf("keys and volume (-before +after):\n%s", diff)
	}
}

// uninstalls checks that Helm removes the objects it has created, and keeps those of the Job, the StatefulSet and the actuator.
func (r *release) uninstalls() {
	r.Helper()
	kept := r.kept()
	r.stop()
	r.helm("uninstall", "keyturn")
	want := append(slices.Collect(maps.Keys(kept)), "Lease keyturn-actuator")
	slices.Sort(want)
	var diff string
	defer func() {
		if diff != "" {
			r.Errorf("what is left (-want +got):\n%s", diff)
		}
	}()
	testkit.Await(r.T, "the rest is gone", func(ctx context.Context) bool {
		left, err := r.left(ctx)
		if err != nil {
			return false
		}
		var names []string
		for _, one := range left {
			names = append(names, one.String())
		}
		slices.Sort(names)
		diff = cmp.Diff(want, names)
		return diff == ""
	})
	for _, object := range r.made {
		if r.exists(r.Context(), object) {
			r.Errorf("%s %s is still there", object.GetKind(), object.GetName())
		}
	}
	if diff := cmp.Diff(kept, r.kept()); diff != "" {
		r.Errorf("keys and volume (-before +after):\n%s", diff)
	}
}

// goesOn holds that a change that was made while there was no Keyturn is found, by the stream and the key of before.
func (r *release) goesOn() {
	r.Helper()
	kept, before := r.kept(), r.revisions()
	r.secret("db", "six")
	r.install()
	r.start()
	r.rolled(before, readers...)
	r.untouched(before, "api")
	if diff := cmp.Diff(kept, r.kept()); diff != "" {
		r.Errorf("keys and volume (-before +after):\n%s", diff)
	}
}
