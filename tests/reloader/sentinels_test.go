package reloader

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/programs"
)

// The sentinels are two Deployments that roll on what they read: one reads a Secret of its name, the other a ConfigMap of its name.
const (
	secretSentinel    = "sentinel"
	configMapSentinel = "sentinel-configmap"
)

// placeSentinels makes the sentinels, with annotations by which a workload rolls on all that it reads.
func (r *rig) placeSentinels(annotations map[string]string) {
	r.Helper()
	first := map[string]string{"value": "none"}
	annotations = maps.Clone(annotations)
	annotations["keyturn.dev/max-rolls-per-hour"] = "0" // They roll again and again.
	r.secret(secretSentinel, first)
	r.configMap(configMapSentinel, first)
	r.deploy(secretSentinel, annotations, func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, secretSentinel) })
	r.deploy(configMapSentinel, annotations, func(template *corev1.PodTemplateSpec) { programs.ReadConfigMap(template, configMapSentinel) })
}

// passSentinels waits, without a fixed time, until all earlier changes have had their effect. Changes of one kind are seen in order, and are
// decided in the order of the stream. But they are published concurrently, so that close ones can swap places, and workloads that are due together
// are patched together. Therefore both sentinels roll twice.
func (r *rig) passSentinels() {
	r.Helper()
	for range 2 {
		before := map[string]int64{secretSentinel: r.writes(secretSentinel), configMapSentinel: r.writes(configMapSentinel)}
		next := map[string]string{"value": time.Now().String()}
		r.secret(secretSentinel, next)
		r.configMap(configMapSentinel, next)
		for name, writes := range before {
			r.awaitRoll(name, writes)
		}
	}
}

// leaves makes a change, and fails the test if it rolls the Deployment before changes that come later have rolled the sentinels.
func (r *rig) leaves(name string, change func()) {
	r.Helper()
	if r.writes(secretSentinel) == 0 {
		r.placeSentinels(auto())
	}
	before := r.writes(name)
	change()
	r.passSentinels()
	if now := r.writes(name); now != before {
		r.Errorf("%s was rolled %d times, want none", name, now-before)
	}
}
