package reloader

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// jobsRule is what Reloader's chart leaves out of the Role with ignoreJobs.
const jobsRule = "  - {apiGroups: [batch], resources: [jobs], verbs: [create, delete, list, get]}\n"

// reloadersRole is what the Role of Reloader's chart allows by default. There is no permission to watch workloads.
const reloadersRole = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: theirs, namespace: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: theirs, namespace: NAMESPACE}
rules:
  - {apiGroups: [""], resources: [secrets, configmaps], verbs: [list, get, watch]}
  - {apiGroups: [apps], resources: [deployments, daemonsets, statefulsets], verbs: [list, get, update, patch]}
  - {apiGroups: [batch], resources: [cronjobs], verbs: [list, get]}
` + jobsRule + `  - {apiGroups: [""], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: theirs, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: theirs}
subjects: [{kind: ServiceAccount, name: theirs, namespace: NAMESPACE}]
`

// apply applies manifests to the namespace of the rig, which they call NAMESPACE.
func (r *rig) apply(manifests string) {
	r.Helper()
	testkit.Must(r, plane.ApplyYAML(r.Context(), strings.NewReader(strings.ReplaceAll(manifests, "NAMESPACE", r.namespace))))
}

// startAsReloader starts the command with the permissions of Reloader, which are reloadersRole or a part of it.
func (r *rig) startAsReloader(role string, args ...string) {
	r.Helper()
	r.start(append([]string{"--kubeconfig", r.theirs(role)}, args...)...)
}

// says fails the test unless the command has logged a text so often, and no error.
func (r *rig) says(text string, times int) {
	r.Helper()
	if lines := strings.Count(r.program.Output(), text); lines != times {
		r.Errorf("it said %d times %q, want %d", lines, text, times)
	}
	if strings.Contains(r.program.Output(), `"level":"ERROR"`) {
		r.Error("it logged errors")
	}
}

func TestThePermissionsOfReloaderAreEnough(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.secret("db", map[string]string{"password": "one"})
	r.startAsReloader(reloadersRole)
	r.deploy("web", auto(), readDB)
	begin, err := plane.AuditEnd()
	testkit.Must(t, err)
	r.rolls("web", func() { r.secret("db", map[string]string{"password": "two"}) })
	// Twice a minute everything is listed, from the memory of the API server, and that would have web rolled, too.
	testkit.Await(t, "the namespace is listed because of the change", func(context.Context) bool {
		entries, _, err := plane.AuditSince(begin)
		testkit.Must(t, err)
		theirs := testbed.Requests(entries, testbed.ServiceAccountUser(r.namespace, "theirs"))
		return slices.ContainsFunc(theirs, func(e testbed.AuditEntry) bool {
			return e.Verb == "list" && e.Resource == "deployments" && !strings.Contains(e.URI, "resourceVersion=")
		})
	})
	r.rolls("web", func() { r.secret("db", map[string]string{"password": "three"}) })
	r.says("no permission to watch; listing instead", 5) // once for each kind
}

func TestThePermissionsOfReloaderAreEnoughForJobs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.secret("db", map[string]string{"password": "one"})
	uid := r.runJobs(readDB)
	r.startAsReloader(reloadersRole)
	r.secret("sentinel", map[string]string{"value": "0"})
	r.deploy("sentinel", auto(), func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, "sentinel") })
	for i, password := range []string{"two", "three"} {
		before := uid
		r.secret("db", map[string]string{"password": password})
		testkit.Await(t, "a Job is started, and the other is made anew", func(context.Context) bool {
			var started int
			started, uid = r.jobs()
			return started == i+1 && uid != "" && uid != before
		})
	}
	r.says(`"resource":"cronjobs","err":"not recorded on the workload: `, 1)
	r.stop()
	r.startAsReloader(reloadersRole)
	r.rolls("sentinel", func() { r.secret("sentinel", map[string]string{"value": "last"}) })
	if started, now := r.jobs(); started != 2 || now != uid {
		t.Errorf("after a restart: %d Jobs were started, want 2; the other was made anew: %t", started, now != uid)
	}
	r.says("patch failed; retrying", 0)
}

func TestMetricsAreServedOnceTheSourcesAreSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	account, role, _ := strings.Cut(reloadersRole, "---\n")
	r.apply(account)
	kubeconfig, err := plane.ServiceAccountKubeconfig(t.Context(), r.namespace, "theirs")
	testkit.Must(t, err)
	r.launch(nil, "--namespaces", r.namespace, "--kubeconfig", kubeconfig)
	// It is alive, but Reloader's chart must not call a pod ready that sees nothing.
	testkit.Await(t, "it is refused to list", func(context.Context) bool { return strings.Contains(r.program.Output(), "is forbidden") })
	for path, want := range map[string]int{"/live": http.StatusOK, "/metrics": http.StatusServiceUnavailable} {
		if code, _, err := r.program.Get(t.Context(), "metrics", path); err != nil || code != want {
			t.Errorf("%s: got %d, %v, want %d", path, code, err, want)
		}
	}
	r.apply(role)
	testkit.Await(t, "the metrics are served", func(ctx context.Context) bool {
		code, _, err := r.program.Get(ctx, "metrics", "/metrics")
		return err == nil && code == http.StatusOK
	})
}

func TestWithoutPermissionForJobsOnlyThoseOfCronJobsAreNotStarted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.secret("db", map[string]string{"password": "one"})
	before := r.runJobs(readDB)
	r.startAsReloader(strings.Replace(reloadersRole, jobsRule, "", 1), "--ignored-workload-types", "jobs")
	r.deploy("web", auto(), readDB)
	r.rolls("web", func() { r.secret("db", map[string]string{"password": "two"}) })
	testkit.Await(t, "it says what is missing", func(context.Context) bool {
		return strings.Contains(r.program.Output(), "no job is started: jobs.batch is forbidden")
	})
	if started, uid := r.jobs(); started != 0 || uid != before {
		t.Errorf("got %d Jobs that were started, and the other made anew: %t, want neither", started, uid != before)
	}
	r.rolls("web", func() { r.secret("db", map[string]string{"password": "three"}) })
}
