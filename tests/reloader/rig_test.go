package reloader

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/running"
	"github.com/keyturn/keyturn/tests/testkit/templates"
)

// rig is one test's namespace and process.
type rig struct {
	*testing.T
	client    kubernetes.Interface
	namespace string
	dir       string
	program   *programs.Program
	templates *templates.Counter
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, client: kubernetes.NewForConfigOrDie(plane.Config()), namespace: plane.Namespace(t), dir: t.TempDir()}
	var err error
	if r.templates, err = templates.Watch(t.Context(), r.client, r.namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.templates.Stop)
	return r
}

// start starts the command for the rig's namespace, with further flags, and waits until it is ready.
func (r *rig) start(args ...string) {
	r.Helper()
	r.startWith(nil, append([]string{"--namespaces", r.namespace}, args...)...)
}

// startWith starts the command with an environment and flags, and waits until it is ready.
func (r *rig) startWith(env []string, args ...string) {
	r.Helper()
	r.launch(env, args...)
	ctx, stop := running.WithTimeout(r.Context(), testkit.Patience)
	defer stop()
	testkit.Must(r, r.program.Ready(ctx))
}

// launch starts the command with an environment and flags.
func (r *rig) launch(env []string, args ...string) {
	r.Helper()
	program, err := command.Start(r.dir, args, append([]string{"GORACE=atexit_sleep_ms=0"}, env...))
	testkit.Must(r, err)
	r.program = program
	r.Cleanup(func() {
		// The error is the exit status of a process that the test has ended.
		_ = program.Stop(20 * time.Second)
		if r.Failed() {
			r.Logf("log of %s %d:\n%s", program.Name(), program.Pid(), program.Output())
		}
	})
}

// stop ends the command as a kubelet does.
func (r *rig) stop() {
	r.Helper()
	if err := r.program.Stop(20 * time.Second); err != nil {
		r.Fatalf("the command ended with %v", err)
	}
}

func (r *rig) secret(name string, data map[string]string) {
	r.Helper()
	testkit.Must(r, programs.SetSecret(r.Context(), r.client, r.namespace, name, data))
}

// label changes the labels of a Secret, and nothing else.
func (r *rig) label(secret string) {
	r.Helper()
	labels := []byte(`{"metadata":{"labels":{"team":"shop"}}}`)
	if _, err := r.client.CoreV1().Secrets(r.namespace).Patch(r.Context(), secret, types.MergePatchType, labels, metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

// labelConfigMap is label for a ConfigMap.
func (r *rig) labelConfigMap(name string) {
	r.Helper()
	labels := []byte(`{"metadata":{"labels":{"team":"shop"}}}`)
	if _, err := r.client.CoreV1().ConfigMaps(r.namespace).Patch(r.Context(), name, types.MergePatchType, labels, metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) configMap(name string, data map[string]string) {
	r.Helper()
	testkit.Must(r, programs.SetConfigMap(r.Context(), r.client, r.namespace, name, data))
}

// auto are the annotations of a workload that rolls on everything that it reads.
func auto() map[string]string { return map[string]string{"reloader.stakater.com/auto": "true"} }

// readDB has the pods of a template read the Secret db.
func readDB(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, "db") }

// deploy creates a Deployment that reads what read adds to its template, and waits until its pod is available.
func (r *rig) deploy(name string, annotations map[string]string, read func(template *corev1.PodTemplateSpec)) {
	r.Helper()
	deployment := programs.NewDeployment(r.namespace, name, 1, annotations)
	read(&deployment.Spec.Template)
	if _, err := r.client.AppsV1().Deployments(r.namespace).Create(r.Context(), deployment, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	testkit.Await(r.T, "the pod of "+name+" is available", func(context.Context) bool {
		return r.deployment(name).Status.AvailableReplicas == 1
	})
}

func (r *rig) deployment(name string) *appsv1.Deployment {
	r.Helper()
	deployment, err := r.client.AppsV1().Deployments(r.namespace).Get(r.Context(), name, metav1.GetOptions{})
	testkit.Must(r, err)
	return deployment
}

// writes returns how often the template of a Deployment was written.
func (r *rig) writes(name string) int64 {
	r.Helper()
	writes, err := r.templates.Writes(r.Context())
	testkit.Must(r, err)
	return writes["deployment/"+name]
}

// rolls makes a change, and fails the test unless it rolls the Deployment.
func (r *rig) rolls(name string, change func()) {
	r.Helper()
	before := r.writes(name)
	change()
	r.awaitRoll(name, before)
}

// awaitRoll fails the test unless the template of a Deployment is written once more than before.
func (r *rig) awaitRoll(name string, before int64) {
	r.Helper()
	began := time.Now()
	testkit.Await(r.T, name+" is rolled", func(context.Context) bool { return r.templates.Seen()["deployment/"+name] != before })
	r.Logf("%s was rolled after %s", name, time.Since(began).Round(time.Millisecond))
}
