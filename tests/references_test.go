package tests

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// Every form has a source with the keys "read" and "other". A form that is keyed reads one of them.
var references = []struct {
	name  string
	kind  events.Kind
	keyed bool
	read  func(kind events.Kind, source string) func(*corev1.PodSpec)
}{
	{
		name: "a key of a Secret as variable", kind: events.KindSecret, keyed: true,
		read: func(kind events.Kind, source string) func(*corev1.PodSpec) { return readsKey(kind, source, "read") },
	},
	{
		name: "a key of a ConfigMap as variable", kind: events.KindConfigMap, keyed: true,
		read: func(kind events.Kind, source string) func(*corev1.PodSpec) { return readsKey(kind, source, "read") },
	},
	{name: "a Secret as variables", kind: events.KindSecret, read: readsAll},
	{name: "a ConfigMap as variables", kind: events.KindConfigMap, read: readsAll},
	{name: "a Secret as files", kind: events.KindSecret, read: volume(files, "")},
	{name: "a ConfigMap as files", kind: events.KindConfigMap, read: volume(files, "")},
	{name: "items of a Secret as files", kind: events.KindSecret, keyed: true, read: volume(files, "", item("read", "app/file"))},
	{name: "items of a ConfigMap as files", kind: events.KindConfigMap, keyed: true, read: volume(files, "", item("read", "app/file"))},
	{name: "a file of a Secret by subPath", kind: events.KindSecret, keyed: true, read: volume(files, "read")},
	{
		name: "a folder of a ConfigMap by subPath", kind: events.KindConfigMap, keyed: true,
		read: volume(files, "app", item("read", "app/file"), item("other", "file")),
	},
	{name: "a projected Secret", kind: events.KindSecret, read: volume(project, "")},
	{name: "a projected ConfigMap", kind: events.KindConfigMap, read: volume(project, "")},
	{name: "items of a projected Secret", kind: events.KindSecret, keyed: true, read: volume(project, "", item("read", "file"))},
	{name: "items of a projected ConfigMap", kind: events.KindConfigMap, keyed: true, read: volume(project, "", item("read", "file"))},
	{
		name: "a file of a projected Secret by subPath", kind: events.KindSecret, keyed: true,
		read: volume(project, "file", item("read", "file"), item("other", "another")),
	},
	{
		name: "a volume that nobody mounts", kind: events.KindSecret,
		read: func(kind events.Kind, source string) func(*corev1.PodSpec) {
			return mounts(files(kind, source, nil), "", "")
		},
	},
	{
		name: "a key in an init container", kind: events.KindSecret, keyed: true,
		read: func(kind events.Kind, source string) func(*corev1.PodSpec) {
			return func(pod *corev1.PodSpec) {
				further(&pod.InitContainers, "init", func(c *corev1.Container) { c.Env = append(c.Env, env(kind, source, "read", nil)) })
			}
		},
	},
	{
		name: "variables of a sidecar", kind: events.KindConfigMap,
		read: func(kind events.Kind, source string) func(*corev1.PodSpec) {
			return func(pod *corev1.PodSpec) {
				further(&pod.InitContainers, "sidecar", func(c *corev1.Container) {
					always := corev1.ContainerRestartPolicyAlways
					c.RestartPolicy, c.EnvFrom = &always, append(c.EnvFrom, envFrom(kind, source, nil))
				})
			}
		},
	},
	{
		name: "variables of a second container", kind: events.KindSecret,
		read: func(kind events.Kind, source string) func(*corev1.PodSpec) {
			return func(pod *corev1.PodSpec) {
				further(&pod.Containers, "second", func(c *corev1.Container) { c.EnvFrom = append(c.EnvFrom, envFrom(kind, source, nil)) })
			}
		},
	},
	{
		name: "the Secret of a CSI volume", kind: events.KindSecret,
		read: func(_ events.Kind, source string) func(*corev1.PodSpec) {
			return mounts(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
				Driver: "csi.example.com", NodePublishSecretRef: &corev1.LocalObjectReference{Name: source},
			}}, "/files", "")
		},
	},
	{
		name: "the Secret of an Azure volume", kind: events.KindSecret,
		read: func(_ events.Kind, source string) func(*corev1.PodSpec) {
			return mounts(corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: source, ShareName: "share"}}, "/files", "")
		},
	},
}

func item(key, path string) corev1.KeyToPath { return corev1.KeyToPath{Key: key, Path: path} }

// project is projected in the form of files.
func project(kind events.Kind, name string, _ *bool, items ...corev1.KeyToPath) corev1.VolumeSource {
	return projected(kind, name, items...)
}

// volume reads a source through a volume of its own.
func volume(make func(events.Kind, string, *bool, ...corev1.KeyToPath) corev1.VolumeSource, subPath string, items ...corev1.KeyToPath,
) func(events.Kind, string) func(*corev1.PodSpec) {
	return func(kind events.Kind, source string) func(*corev1.PodSpec) {
		return mounts(make(kind, source, nil, items...), "/files", subPath)
	}
}

// slug makes a name in Kubernetes of the name of a test case.
func slug(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), " ", "-")
}

func TestEveryFormOfReferenceRollsEveryKindOfWorkload(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	all, whole := tally{}, tally{}
	for _, form := range references {
		source := slug(form.name)
		r.write(form.kind, source, map[string]string{"read": "one", "other": "one"})
		for _, k := range kinds {
			w := workload{kind: k.name, name: source, on: "auto", read: form.read(form.kind, source)}
			r.create(w)
			all[w.String()] = 1
			if !form.keyed {
				whole[w.String()] = 1
			}
		}
	}
	r.placeFence()
	r.start()

	r.rolls("a key is changed that the keyed ones do not read", whole, func() {
		for _, form := range references {
			r.set(form.kind, slug(form.name), "other", "two")
		}
	})
	r.rolls("a key is changed that all read", all, func() {
		for _, form := range references {
			r.set(form.kind, slug(form.name), "read", "two")
		}
	})
	r.rollsNothing("the keys get the values that they have", func() {
		for _, form := range references {
			r.write(form.kind, slug(form.name), map[string]string{"read": "two", "other": "two"})
		}
	})
}
