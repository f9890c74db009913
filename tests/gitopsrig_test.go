package tests

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// gitopsChart makes a folder a chart for Helm, whose templates are manifests as they are.
const gitopsChart = "apiVersion: v2\nname: app\nversion: 0.1.0\n"

// gitopsManifests are an application of a name: a Deployment that reads the Secret db, which is in no repository, and a ConfigMap of the
// application, and another ConfigMap that nobody reads.
const gitopsManifests = `apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: NAMESPACE}
data: {level: 'CONFIG'}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME-notes, namespace: NAMESPACE}
data: {text: 'NOTES'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: NAMESPACE, annotations: {example.com/team: shopANNOTATIONS}}
spec:
  replicas: 1
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
        - name: main
          image: example.com/app:IMAGE
          envFrom: [{secretRef: {name: db}}, {configMapRef: {name: NAME}}]
`

// gitopsJobs are a Job, which a change recreates, and a CronJob, of which it starts a Job, of an application.
const gitopsJobs = `---
apiVersion: batch/v1
kind: Job
metadata: {name: NAME-import, namespace: NAMESPACE, annotations: {keyturn.dev/roll-on: auto}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: 'example.com/app:1', envFrom: [{secretRef: {name: db}}]}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: NAME-nightly, namespace: NAMESPACE, annotations: {keyturn.dev/roll-on: auto}}
spec:
  schedule: 0 0 31 2 *
  successfulJobsHistoryLimit: 100
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: 'example.com/app:1', envFrom: [{secretRef: {name: db}}]}]
`

// gitopsTool applies applications.
type gitopsTool interface {
	// install tells the tool where the application is.
	install(r *gitopsRig, app gitopsApp)
	// sync has it apply the application as it is at a commit, and look whether all is as it was applied.
	sync(r *gitopsRig, app gitopsApp, commit string)
	// await waits until it has, and says that all is well.
	await(r *gitopsRig, app gitopsApp, commit string)
}

// gitopsApp is an application in the way in which a tool applies it.
type gitopsApp struct {
	// way is what the tool does, as a sentence.
	way  string
	name string
	tool gitopsTool
	// jobs means that it has a Job and a CronJob, too: what a tool replaces cannot have a Job.
	jobs bool
	// forgets means that it removes an annotation that somebody has set by hand, when it writes something else of the application.
	forgets bool
	// sticks means that it does not remove an annotation that it has set and that is not in the manifest any more.
	sticks bool
	// manager is the field manager of who annotates by hand. Empty: that of kubectl.
	manager string
	// heals means that it takes back what somebody else edits.
	heals bool
	// replaces means that the tool takes back what rolled the Deployment when it writes another part of that.
	replaces bool
	// again is how often the pod template is written by a sync that has nothing to write, and other by one that writes something else of the
	// application.
	again, other int64
}

func (a gitopsApp) workload() string { return "deployment/" + a.name }

// gitopsRig is a rig with a repository of applications.
type gitopsRig struct {
	*rig
	apps       []gitopsApp
	repository *testbed.Repository
	// image, config and notes are what the manifests say now, and annotations, which begin with a comma, are those of the Deployments.
	image, config, notes int
	annotations          string
	// last is the last commit, and changes counts those of the Secret.
	last    string
	changes int
	// requests counts those to Flux, and requested is the last of each application.
	requests  int
	requested map[string]string
}

func newGitopsRig(t *testing.T, apps []gitopsApp, options programs.Options) *gitopsRig {
	t.Helper()
	repository := testbed.NewRepository(t, "apps")
	return &gitopsRig{rig: newJobsRig(t, options), apps: apps, repository: repository, requested: map[string]string{}}
}

// commit commits the manifests of all applications as they are to be now.
func (r *gitopsRig) commit(message string) string {
	r.Helper()
	for _, app := range r.apps {
		manifests := gitopsManifests
		if app.jobs {
			manifests += gitopsJobs
		}
		manifests = strings.NewReplacer(
			"NAMESPACE", r.namespace, "NAME", app.name, "IMAGE", strconv.Itoa(r.image), "CONFIG", strconv.Itoa(r.config),
			"NOTES", strconv.Itoa(r.notes), "ANNOTATIONS", r.annotations,
		).Replace(manifests)
		for path, content := range map[string]string{"Chart.yaml": gitopsChart, "templates/app.yaml": manifests} {
			path = filepath.Join(r.repository.Dir, app.name, path)
			testkit.Must(r, os.MkdirAll(filepath.Dir(path), 0o750))
			testkit.Must(r, os.WriteFile(path, []byte(content), 0o600))
		}
	}
	commit, err := r.repository.Commit(r.Context(), message)
	testkit.Must(r, err)
	return commit
}

// install has every tool apply the applications for the first time.
func (r *gitopsRig) install() {
	r.Helper()
	r.last = r.commit("begin")
	for _, app := range r.apps {
		app.tool.install(r, app)
	}
	r.awaitAll()
}

// release commits the manifests, has every tool apply them, and waits until all have.
func (r *gitopsRig) release(message string) {
	r.Helper()
	r.last = r.commit(message)
	for _, app := range r.apps {
		app.tool.sync(r, app, r.last)
	}
	r.awaitAll()
}

// releaseNotes is a release of what nobody reads.
func (r *gitopsRig) releaseNotes() {
	r.Helper()
	r.notes++
	r.release("other notes")
}

// play holds that steps write what they are to write, and nothing else.
func (r *gitopsRig) play(steps []gitopsStep) {
	r.Helper()
	for _, step := range steps {
		want := tally{}
		for _, app := range r.apps {
			if n := step.writes(app); n > 0 {
				want[app.workload()] = n
			}
		}
		begin := auditEnd(r)
		r.rolls(step.name, want, func() {
			step.do()
			r.quiet() // A tool may take back later what it finds, and rollouts end before the next step.
		})
		if writes := r.writesOfTools(begin); step.idle && len(writes) > 0 {
			r.Errorf("%s: Argo CD and Flux have written %q", step.name, writes)
		}
		if r.Failed() {
			r.FailNow() // What follows would only say so again.
		}
	}
}

// awaitAll waits until all tools say that all is as in the last commit.
func (r *gitopsRig) awaitAll() {
	r.Helper()
	for _, app := range r.apps {
		app.tool.await(r, app, r.last)
	}
}

// change changes the Secret that all applications read.
func (r *gitopsRig) change() {
	r.Helper()
	r.changes++
	r.secret("db", map[string]string{"password": strconv.Itoa(r.changes)})
}

// edit puts another image into every Deployment, and waits until it is taken back where the tool does that. Elsewhere it leaves them alone.
func (r *gitopsRig) edit() {
	r.Helper()
	for _, app := range r.apps {
		if !app.heals {
			continue
		}
		before := r.tally()[app.workload()]
		edited := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/edited:1"}]}}}}`)
		deployments := r.client.AppsV1().Deployments(r.namespace)
		if _, err := deployments.Patch(r.Context(), app.name, types.StrategicMergePatchType, edited, metav1.PatchOptions{}); err != nil {
			r.Fatal(err)
		}
		r.eventually(app.name+" is healed", func(context.Context) bool { return r.tally()[app.workload()] >= before+2 })
	}
	r.awaitAll()
}

// restart stops both programs and starts them again, the actuator with more arguments.
func (r *gitopsRig) restart(args ...string) {
	r.Helper()
	r.stop(r.watcher)
	r.stop(r.actuator)
	r.startActuator(args...)
	r.startWatcher()
}

// annotate annotates the Deployments by hand.
func (r *gitopsRig) annotate(annotation string) {
	r.Helper()
	for _, app := range r.apps {
		args := []string{"annotate", "deployment", app.name, annotation}
		if app.manager != "" {
			args = append(args, "--field-manager", app.manager)
		}
		r.run(tool(r.T, build.Kubectl), args...)
	}
}

// awaitPods waits until the pods of an application are those of its Deployment as it is.
func (r *gitopsRig) awaitPods(app gitopsApp) {
	r.Helper()
	r.eventually("the pods of "+app.name+" are available", func(context.Context) bool {
		d := r.deployment(app.name)
		s := d.Status
		return s.ObservedGeneration == d.Generation && s.Replicas == 1 && s.UpdatedReplicas == 1 && s.AvailableReplicas == 1
	})
}

// run runs a program as the cluster's admin, without anything of the user's configuration.
func (r *rig) run(binary string, args ...string) {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), binary, append(args, "--namespace", r.namespace)...)
	cmd.Env = []string{"HOME=" + r.TempDir(), "KUBECONFIG=" + plane.Kubeconfig()}
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("%s %s: %v\n%s", filepath.Base(binary), strings.Join(args, " "), err, out)
	}
}
