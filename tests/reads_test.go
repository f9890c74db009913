package tests

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// The functions of this file make pod specs read sources, each in one of the forms that there are.

// readsAll makes a container read all keys of a source as environment variables.
func readsAll(kind events.Kind, name string) func(*corev1.PodSpec) {
	return inMain(func(c *corev1.Container) { c.EnvFrom = append(c.EnvFrom, envFrom(kind, name, nil)) })
}

// readsKey makes a container read one key of a source as an environment variable.
func readsKey(kind events.Kind, name, key string) func(*corev1.PodSpec) {
	return inMain(func(c *corev1.Container) { c.Env = append(c.Env, env(kind, name, key, nil)) })
}

// both combines two functions that make a pod spec read something.
func both(first, second func(*corev1.PodSpec)) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) {
		first(pod)
		second(pod)
	}
}

func inMain(change func(*corev1.Container)) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) { change(&pod.Containers[0]) }
}

// further puts one more container, with a name of its own, into a list of containers.
func further(list *[]corev1.Container, name string, change func(*corev1.Container)) {
	container := corev1.Container{Name: name, Image: "example.com/app:1"}
	change(&container)
	*list = append(*list, container)
}

func env(kind events.Kind, name, key string, optional *bool) corev1.EnvVar {
	object := corev1.LocalObjectReference{Name: name}
	from := &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: object, Key: key, Optional: optional}}
	if kind == events.KindSecret {
		from = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: object, Key: key, Optional: optional}}
	}
	return corev1.EnvVar{Name: "VALUE", ValueFrom: from}
}

func envFrom(kind events.Kind, name string, optional *bool) corev1.EnvFromSource {
	object := corev1.LocalObjectReference{Name: name}
	if kind == events.KindSecret {
		return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: object, Optional: optional}}
	}
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: object, Optional: optional}}
}

// files returns a volume of the source: of the items, or of all keys without any.
func files(kind events.Kind, name string, optional *bool, items ...corev1.KeyToPath) corev1.VolumeSource {
	if kind == events.KindSecret {
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Items: items, Optional: optional}}
	}
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items, Optional: optional,
	}}
}

// projected is a volume with a source in it, and another that nobody changes.
func projected(kind events.Kind, name string, items ...corev1.KeyToPath) corev1.VolumeSource {
	object, yes := corev1.LocalObjectReference{Name: name}, true
	source := corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: object, Items: items}}
	if kind == events.KindSecret {
		source = corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: object, Items: items}}
	}
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "nothing"}, Optional: &yes}},
		source,
	}}}
}

// mounts makes a container mount a volume, or a part of it, or not where at is empty.
func mounts(volume corev1.VolumeSource, at, subPath string) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "files", VolumeSource: volume})
		if at == "" {
			return
		}
		container := &pod.Containers[0]
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "files", MountPath: at, SubPath: subPath})
	}
}

// pulls makes a pod spec use a Secret to pull images.
func pulls(name string) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
}
