package tests

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit/manifests"
)

// startMounting starts a pod into which the Secrets Store CSI driver mounts a version. No driver runs: the rig writes what it would.
func (r *rig) startMounting(pod, class, version string) manifests.PodStatus {
	r.Helper()
	template := programs.PodTemplate(nil)
	owner, err := r.client.CoreV1().Pods(r.namespace).Create(r.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod}, Spec: template.Spec,
	}, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	status := manifests.PodStatus{Namespace: r.namespace, Pod: pod, Class: class, UID: string(owner.UID)}
	r.mountVersion(version, status)
	return status
}

// mountVersion is what the driver does when it finds another version in the store, for one pod after the other.
func (r *rig) mountVersion(version string, pods ...manifests.PodStatus) {
	r.Helper()
	for _, status := range pods {
		status.Version = version
		if err := plane.ApplyYAML(r.Context(), strings.NewReader(status.YAML())); err != nil {
			r.Fatal(err)
		}
	}
}

// mountsClass has the pods mount a SecretProviderClass.
func mountsClass(class string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "secrets", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: "secrets-store.csi.k8s.io", ReadOnly: new(true), VolumeAttributes: map[string]string{"secretProviderClass": class},
		}}})
	}
}

func TestWhatTheSecretsStoreDriverMountsRollsOnceForAllPods(t *testing.T) {
	t.Parallel()
	if err := plane.ApplyKindsOf(t.Context(), build.SecretsStore); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, programs.Options{
		WatcherArgs:  []string{"--sources", "secret,configmap,secretproviderclass"},
		ActuatorArgs: []string{"--settle", "50ms"},
	})
	if err := plane.ApplyKinds(t.Context(), testbed.RBACKinds(), "../deploy/components/secret-provider-classes/watcher.yaml"); err != nil {
		t.Fatal(err)
	}
	for class, annotations := range map[string]string{"db": "{}", "ignored": `{keyturn.dev/ignore: "true"}`} {
		if err := plane.ApplyYAML(t.Context(), strings.NewReader(manifests.SecretProviderClass(r.namespace, class, annotations))); err != nil {
			t.Fatal(err)
		}
	}
	r.create(workload{name: "web", on: "auto", read: mountsClass("db")})
	r.create(workload{name: "named", on: "secretproviderclass/db"})
	r.create(workload{name: "of-ignored", on: "auto", read: mountsClass("ignored")})
	want := once("statefulset/web", "statefulset/named")
	var pods []manifests.PodStatus
	for _, pod := range []string{"web-a", "web-b", "web-c"} {
		pods = append(pods, r.startMounting(pod, "db", "VERSION-1"))
	}
	other := r.startMounting("other", "ignored", "VERSION-1")
	r.placeFence()
	r.start()
	r.rollsNothing("a pod starts with what no other has", func() { r.startMounting("web-d", "db", "VERSION-9") })
	r.rolls("the pods get another version, one after the other", want, func() { r.mountVersion("VERSION-2", pods...) })
	r.rolls("the one of before again", want, func() { r.mountVersion("VERSION-1", pods...) })
	r.rollsNothing("a class that is ignored changes", func() { r.mountVersion("VERSION-2", other) })
	r.stop(r.watcher)
	r.rolls("another version comes before the watcher is back", want, func() {
		r.startMounting("web-e", "db", "VERSION-10")
		r.mountVersion("VERSION-4", pods...)
		r.startWatcher()
	})
	for _, program := range []*programs.Program{r.watcher, r.actuator} {
		if strings.Contains(program.Output(), "VERSION-") {
			t.Errorf("the log of the %s has a version", program.Name())
		}
	}
}
