package reloader

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// reloadersLeases are what Reloader's chart adds to its Role with enableHA.
const reloadersLeases = `  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}
`

// replica starts a replica of a Deployment in the namespace of the rig, with the environment and the rights of Reloader's chart with enableHA.
func (r *rig) replica(deployment, number string, args ...string) *rig {
	r.Helper()
	kubeconfig := r.theirs(strings.Replace(reloadersRole, jobsRule, jobsRule+reloadersLeases, 1))
	one := *r
	one.dir = r.TempDir()
	one.startWith(
		[]string{"RELOADER_DEPLOYMENT_NAME=" + deployment, "POD_NAME=" + deployment + "-" + number, "POD_NAMESPACE=" + r.namespace},
		append([]string{"--namespaces", r.namespace, "--kubeconfig", kubeconfig, "--enable-ha=true"}, args...)...,
	)
	return &one
}

func TestTwoReleasesInANamespaceRollWhatEachOfThemWatches(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.secret("db", map[string]string{"password": "one"})
	r.configMap("app", map[string]string{"level": "one"})
	r.deploy("web", auto(), readDB)
	r.deploy("api", auto(), func(template *corev1.PodTemplateSpec) { programs.ReadConfigMap(template, "app") })
	r.replica("secrets-reloader", "1", "--resources-to-ignore=configmaps")
	r.replica("configmaps-reloader", "1", "--resources-to-ignore=secrets")
	r.rolls("web", func() { r.secret("db", map[string]string{"password": "two"}) })
	r.rolls("api", func() { r.configMap("app", map[string]string{"level": "two"}) })
}

func TestAnotherReplicaTakesOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range []string{"earlier", "web"} {
		r.secret(name, map[string]string{"password": "one"})
		r.deploy(name, auto(), func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, name) })
	}
	r.runJobs(func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, "earlier") })
	first := r.replica("reloader", "1")
	first.rolls("earlier", func() { r.secret("earlier", map[string]string{"password": "two"}) })
	second := r.replica("reloader", "2")
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
		// It may have done so twice: where the API server is slow, a leader leaves the lead.
		if !replica.program.Leads() {
			t.Errorf("%s never became the leader", replica.program.Name())
		}
	}
}

func TestAnotherReplicaStartsNoJobForChangesThatTheFirstHasStartedOneForEach(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range []string{"db", "queue", "web"} {
		r.secret(name, map[string]string{"password": "one"})
	}
	r.deploy("web", auto(), func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, "web") })
	r.runJobs(func(template *corev1.PodTemplateSpec) {
		programs.ReadSecret(template, "db")
		programs.ReadSecret(template, "queue")
	})
	first := r.replica("reloader", "1")
	r.replica("reloader", "2")
	for i, name := range []string{"db", "queue"} {
		r.secret(name, map[string]string{"password": "two"})
		testkit.Await(t, "a Job is started for "+name, func(context.Context) bool {
			started, _ := r.jobs()
			return started == i+1
		})
	}
	first.program.Kill()
	// For the second, both changes are to be decided together.
	r.leaves("web", func() {})
	if started, _ := r.jobs(); started != 2 {
		t.Errorf("%d Jobs were started for two changes, want one for each", started)
	}
}
