package reloader

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/programs"
)

// reloadersLeases are what Reloader's chart adds to its Role with enableHA.
const reloadersLeases = `  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}
`

func TestAnotherReplicaTakesOver(t *testing.T) {
	r := newRig(t)
	kubeconfig := r.theirs(strings.Replace(reloadersRole, jobsRule, jobsRule+reloadersLeases, 1))
	for _, name := range []string{"earlier", "web"} {
		r.secret(name, map[string]string{"password": "one"})
		r.deploy(name, auto(), func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, name) })
	}
	r.runJobs(func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, "earlier") })
	replica := func(name string) *rig {
		one := *r
		one.dir = t.TempDir()
		one.startWith([]string{"POD_NAME=" + name, "POD_NAMESPACE=" + r.namespace},
			"--namespaces", r.namespace, "--kubeconfig", kubeconfig, "--enable-ha=true")
		return &one
	}
	first := replica("reloader-1")
	first.rolls("earlier", func() { r.secret("earlier", map[string]string{"password": "two"}) })
	second := replica("reloader-2")
	before := r.writes("web")
	r.rolls("earlier", func() { r.secret("earlier", map[string]string{"password": "three"}) })
	r.leaves("earlier", func() { r.rolls("web", func() { r.secret("web", map[string]string{"password": "two"}) }) })
	if rolled := r.writes("web") - before; rolled != 1 {
		t.Errorf("with two replicas web was rolled %d times for a change, want once", rolled)
	}

	first.program.Kill()
	before = r.writes("web")
	r.leaves("earlier", func() { r.rolls("web", func() { r.secret("web", map[string]string{"password": "three"}) }) })
	if rolled := r.writes("web") - before; rolled != 1 {
		t.Errorf("after the leader was killed web was rolled %d times for a change, want once", rolled)
	}
	// The second was there when the change was made that the first has started a Job for.
	if started, _ := r.jobs(); started != 2 {
		t.Errorf("%d Jobs were started for two changes, want one for each", started)
	}
	for _, replica := range []*rig{first, second} {
		replica.says("became the leader", 1)
	}
}
