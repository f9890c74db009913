package tests

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit/manifests"
)

// mountRig has the kinds of the Secrets Store CSI driver. It writes what the driver would: no driver runs.
type mountRig struct {
	*rig
	custom dynamic.Interface
}

func newMountRig(t *testing.T) *mountRig {
	t.Helper()
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
	return &mountRig{rig: r, custom: dynamic.NewForConfigOrDie(plane.Config())}
}

func (m *mountRig) resource(plural string) dynamic.ResourceInterface {
	return m.custom.Resource(schema.GroupVersionResource{Group: "secrets-store.csi.x-k8s.io", Version: "v1", Resource: plural}).Namespace(m.namespace)
}

func (m *mountRig) class(name, annotations string) {
	m.Helper()
	if err := plane.ApplyYAML(m.Context(), strings.NewReader(manifests.SecretProviderClass(m.namespace, name, annotations))); err != nil {
		m.Fatal(err)
	}
}

// mount starts a pod, and is what the driver then does.
func (m *mountRig) mount(pod, class, version string) {
	m.Helper()
	template := programs.PodTemplate(nil)
	owner, err := m.client.CoreV1().Pods(m.namespace).Create(m.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod}, Spec: template.Spec,
	}, metav1.CreateOptions{})
	if err != nil {
		m.Fatal(err)
	}
	status := manifests.PodStatus{Namespace: m.namespace, Pod: pod, Class: class, UID: string(owner.UID), Version: version}
	if err := plane.ApplyYAML(m.Context(), strings.NewReader(status.YAML())); err != nil {
		m.Fatal(err)
	}
}

// rotate is what the driver does when it finds another version in the store.
func (m *mountRig) rotate(pod, class, version string) {
	m.Helper()
	client := m.resource("secretproviderclasspodstatuses")
	name := manifests.PodStatus{Namespace: m.namespace, Pod: pod, Class: class}.Name()
	status, err := client.Get(m.Context(), name, metav1.GetOptions{})
	if err != nil {
		m.Fatal(err)
	}
	objects := []any{map[string]any{"id": "password", "version": version}, map[string]any{"id": "user", "version": "1"}}
	if err := unstructured.SetNestedSlice(status.Object, objects, "status", "objects"); err != nil {
		m.Fatal(err)
	}
	if _, err := client.Update(m.Context(), status, metav1.UpdateOptions{}); err != nil {
		m.Fatal(err)
	}
}

func (m *mountRig) rotateAll(version string) {
	m.Helper()
	for _, pod := range []string{"web-a", "web-b", "web-c"} {
		m.rotate(pod, "db", version)
	}
}

// mountsClass has the pods mount a SecretProviderClass.
func mountsClass(class string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		yes := true
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "secrets", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: "secrets-store.csi.k8s.io", ReadOnly: &yes, VolumeAttributes: map[string]string{"secretProviderClass": class},
		}}})
	}
}

func TestWhatTheSecretsStoreDriverMountsRollsOnceForAllPods(t *testing.T) {
	t.Parallel()
	m := newMountRig(t)
	m.class("db", "{}")
	m.class("ignored", `{reloader.stakater.com/ignore: "true"}`)
	reloader := func(annotations ...string) map[string]string {
		all := map[string]string{}
		for _, text := range annotations {
			key, value, _ := strings.Cut(text, "=")
			all[key] = value
		}
		return all
	}
	for _, w := range []workload{
		{name: "web", on: "auto", read: mountsClass("db")},
		{name: "named", on: "secretproviderclass/db"},
		{name: "typed", annotations: reloader("secretproviderclass.reloader.stakater.com/auto=true"), read: mountsClass("db")},
		{name: "listed", annotations: reloader("secretproviderclass.reloader.stakater.com/reload=d.")},
		{
			name: "excluded", read: mountsClass("db"),
			annotations: reloader("reloader.stakater.com/auto=true", "secretproviderclasses.exclude.reloader.stakater.com/reload=db"),
		},
		{name: "of-ignored", on: "auto", read: mountsClass("ignored")},
		{name: "bystander", on: "auto"},
	} {
		m.create(w)
	}
	want := once("statefulset/web", "statefulset/named", "statefulset/typed", "statefulset/listed")
	for _, pod := range []string{"web-a", "web-b", "web-c"} {
		m.mount(pod, "db", "VERSION-1")
	}
	m.mount("other", "ignored", "VERSION-1")
	m.placeFence()
	m.start()
	m.rollsNothing("a pod starts with what no other has", func() { m.mount("web-d", "db", "VERSION-9") })
	m.rolls("the pods get another version, one after the other", want, func() { m.rotateAll("VERSION-2") })
	m.rolls("and another", want, func() { m.rotateAll("VERSION-3") })
	m.rolls("the one of before again", want, func() { m.rotateAll("VERSION-2") })
	m.rollsNothing("a class that is ignored changes", func() { m.rotate("other", "ignored", "VERSION-2") })
	restart := func() {
		m.stop(m.watcher)
		m.startWatcher()
	}
	m.rollsNothing("the watcher starts again", restart)
	m.stop(m.watcher)
	m.rolls("another version comes before the watcher is back", want, func() {
		m.mount("web-e", "db", "VERSION-10")
		m.rotateAll("VERSION-4")
		m.startWatcher()
	})
	m.rollsNothing("the watcher starts once more", restart)
	for _, program := range []*programs.Program{m.watcher, m.actuator} {
		if strings.Contains(program.Output(), "VERSION-") {
			t.Errorf("the log of the %s has a version", program.Name())
		}
	}
}
