package reloader

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/programs"
)

// rolloutCase is a Rollout and a Secret and a ConfigMap of its own, of the same name. What is to happen does so when both have changed.
type rolloutCase struct {
	name string
	// annotations, templated and sourced are those of the Rollout, of its pod template and of the two sources.
	annotations, templated, sourced map[string]string
	// read adds what the pods read.
	read func(template *corev1.PodTemplateSpec, source string)
	// change is what is changed: secret or configmap.
	change string
	// rolls says that the template is written, and restarts that a restart is asked for.
	rolls, restarts bool
}

func readsSecret(template *corev1.PodTemplateSpec, source string) {
	programs.ReadSecret(template, source)
}

func readsConfigMap(template *corev1.PodTemplateSpec, source string) {
	programs.ReadConfigMap(template, source)
}

func readsNothing(*corev1.PodTemplateSpec, string) {}

// readsInVolumes has an init container's volume and a projected one, of the Secret and of the ConfigMap.
func readsInVolumes(template *corev1.PodTemplateSpec, source string) {
	template.Spec.InitContainers = []corev1.Container{{
		Name: "init", Image: "example.com/app:1",
		VolumeMounts: []corev1.VolumeMount{{Name: "secret", MountPath: "/secret"}, {Name: "all", MountPath: "/all"}},
	}}
	template.Spec.Volumes = []corev1.Volume{
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: source}}},
		{Name: "all", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: source}}},
		}}}},
	}
}

func rolloutCases() []rolloutCase {
	on := func(key, value string) map[string]string { return map[string]string{key: value} }
	const (
		auto, secretAuto, configMapAuto = "reloader.stakater.com/auto", "secret.reloader.stakater.com/auto", "configmap.reloader.stakater.com/auto"
		secretNamed, configMapNamed     = "secret.reloader.stakater.com/reload", "configmap.reloader.stakater.com/reload"
		search, match                   = "reloader.stakater.com/search", "reloader.stakater.com/match"
		strategy                        = "reloader.stakater.com/rollout-strategy"
	)
	with := func(first map[string]string, key, value string) map[string]string {
		both := maps.Clone(first)
		both[key] = value
		return both
	}
	return []rolloutCase{
		{name: "auto, a Secret", annotations: on(auto, "true"), read: readsSecret, change: "secret", rolls: true},
		{name: "auto, a ConfigMap", annotations: on(auto, "true"), read: readsConfigMap, change: "configmap", rolls: true},
		{name: "auto, a Secret in a volume", annotations: on(auto, "true"), read: readsInVolumes, change: "secret", rolls: true},
		{name: "auto, a projected ConfigMap", annotations: on(auto, "true"), read: readsInVolumes, change: "configmap", rolls: true},
		{name: "auto, nothing that it reads", annotations: on(auto, "true"), read: readsNothing, change: "secret"},
		{name: "auto on the pod template", templated: on(auto, "true"), read: readsSecret, change: "secret", rolls: true},
		{name: "auto for Secrets, a Secret", annotations: on(secretAuto, "true"), read: readsSecret, change: "secret", rolls: true},
		{name: "auto for Secrets, a ConfigMap", annotations: on(secretAuto, "true"), read: readsConfigMap, change: "configmap"},
		{name: "auto for ConfigMaps, a ConfigMap", annotations: on(configMapAuto, "true"), read: readsConfigMap, change: "configmap", rolls: true},
		{name: "auto for ConfigMaps, a Secret", annotations: on(configMapAuto, "true"), read: readsSecret, change: "secret"},
		{name: "auto that is off", annotations: on(auto, "false"), read: readsSecret, change: "secret"},
		{name: "no annotation", read: readsSecret, change: "secret"},
		{name: "a Secret by name, read", annotations: on(secretNamed, "SOURCE"), read: readsSecret, change: "secret", rolls: true},
		{name: "a Secret by name, not read", annotations: on(secretNamed, "other, SOURCE"), read: readsNothing, change: "secret", rolls: true},
		{name: "a Secret by a pattern", annotations: on(secretNamed, "SOURCE.*"), read: readsSecret, change: "secret", rolls: true},
		{name: "a Secret of another name", annotations: on(secretNamed, "other"), read: readsSecret, change: "secret"},
		{name: "a ConfigMap by name, read", annotations: on(configMapNamed, "SOURCE"), read: readsConfigMap, change: "configmap", rolls: true},
		{name: "a ConfigMap by name, not read", annotations: on(configMapNamed, "SOURCE"), read: readsNothing, change: "configmap", rolls: true},
		{
			name: "an excluded Secret", annotations: with(on(auto, "true"), "secrets.exclude.reloader.stakater.com/reload", "SOURCE"),
			read: readsSecret, change: "secret",
		},
		{
			name: "an excluded ConfigMap", annotations: with(on(auto, "true"), "configmaps.exclude.reloader.stakater.com/reload", "SOURCE"),
			read: readsConfigMap, change: "configmap",
		},
		{name: "search, a match", annotations: on(search, "true"), sourced: on(match, "true"), read: readsSecret, change: "secret", rolls: true},
		{name: "search, no match", annotations: on(search, "true"), read: readsSecret, change: "secret"},
		{
			name: "an ignored Secret", annotations: on(auto, "true"), sourced: on("reloader.stakater.com/ignore", "true"),
			read: readsSecret, change: "secret",
		},
		{
			name: "a restart for a Secret", annotations: with(on(auto, "true"), strategy, "restart"),
			read: readsSecret, change: "secret", restarts: true,
		},
		{
			name: "a restart for a ConfigMap by name", annotations: with(on(configMapNamed, "SOURCE"), strategy, "restart"),
			read: readsNothing, change: "configmap", restarts: true,
		},
		{
			name: "another strategy than a restart", annotations: with(on(auto, "true"), strategy, "rollout"),
			read: readsSecret, change: "secret", rolls: true,
		},
	}
}
