package tests

import (
	"cmp"
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/templates"
)

// rig is one test's namespace and programs.
type rig struct {
	*testing.T
	client    kubernetes.Interface
	namespace string
	programs  *programs.Programs
	watcher   *programs.Program
	actuator  *programs.Program
	templates *templates.Counter
	// outer is the test with which its programs end. Nil: T.
	outer *testing.T
}

// patience is how long anything expected may take. Test machines are slow at times.
const patience = 60 * time.Second

// newRig prepares the programs for a test, scoped to its own namespace so that tests do not see each other's objects.
func newRig(t *testing.T, options programs.Options) *rig {
	t.Helper()
	return newRigIn(t, plane.Namespace(t), options)
}

// newRigIn is newRig for an existing namespace.
func newRigIn(t *testing.T, namespace string, options programs.Options) *rig {
	t.Helper()
	options.WatcherArgs = append([]string{"--namespaces", namespace}, options.WatcherArgs...)
	return prepareRig(t, namespace, options)
}

func prepareRig(t *testing.T, namespace string, options programs.Options) *rig {
	t.Helper()
	r := &rig{T: t, client: kubernetes.NewForConfigOrDie(plane.Config()), namespace: namespace}
	// An earlier test may have killed the API server, and a scheduler may end because of that, some time later.
	_, err := plane.Revive()
	testkit.Must(t, err)
	if r.templates, err = templates.Watch(t.Context(), r.client, namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.templates.Stop)
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	if options.RBAC == "" {
		options.RBAC = "../deploy/base/rbac.yaml"
	}
	// The tests share the policy: this strategy is allowed what the others are. The tests of what it refuses (confined_test.go and others) have it
	// as it is installed.
	options.Binaries, options.ReloaderPolicy = binaries, "env-vars"
	// By default the race detector waits a second when a program ends, for races that show themselves late.
	options.Env = append([]string{"GORACE=atexit_sleep_ms=0"}, options.Env...)
	options.ActuatorArgs = append([]string{"--namespaces", r.namespace, "--leader-elect=false"}, options.ActuatorArgs...)
	if r.programs, err = programs.New(t.Context(), plane, options); err != nil {
		t.Fatal(err)
	}
	return r
}

// sub runs a part of the test as a subtest. What the part starts ends with it.
func (r *rig) sub(name string, part func(r *rig)) {
	r.Helper()
	r.Run(name, func(t *testing.T) {
		own := *r
		own.T, own.outer = t, nil
		part(&own)
	})
}

// step runs a part of the test as a subtest, upon which the later ones build: what it starts goes on after it, and the test ends if it fails.
func (r *rig) step(name string, part func(r *rig)) {
	r.Helper()
	passed := r.Run(name, func(t *testing.T) {
		own := *r
		own.T, own.outer = t, cmp.Or(r.outer, r.T)
		defer func() { r.watcher, r.actuator = own.watcher, own.actuator }()
		part(&own)
	})
	if !passed {
		r.FailNow()
	}
}

// start starts both programs and waits until they are ready.
func (r *rig) start() {
	r.Helper()
	r.startActuator()
	r.startWatcher()
}

func (r *rig) startWatcher(args ...string) {
	r.Helper()
	r.launchWatcher(args...)
	r.watcher.AwaitReady(r.T, patience)
}

// launchWatcher starts a watcher and does not wait until it is ready.
func (r *rig) launchWatcher(args ...string) {
	r.Helper()
	var err error
	if r.watcher, err = r.programs.StartWatcher(args...); err != nil {
		r.Fatal(err)
	}
	r.own(r.watcher)
}

func (r *rig) startActuator(args ...string) {
	r.Helper()
	r.launchActuator(args...)
	r.actuator.AwaitReady(r.T, patience)
}

// launchActuator starts an actuator and does not wait until it is ready.
func (r *rig) launchActuator(args ...string) {
	r.Helper()
	var err error
	if r.actuator, err = r.programs.StartActuator(args...); err != nil {
		r.Fatal(err)
	}
	r.own(r.actuator)
}

// own stops a program when the test ends, and checks its log.
func (r *rig) own(program *programs.Program) {
	r.Helper()
	owner := *r
	owner.T = cmp.Or(r.outer, r.T)
	owner.Cleanup(func() {
		// The error is the exit status of a program that the test has killed.
		_ = program.Stop(20 * time.Second)
		owner.scrutinize(program)
		if owner.Failed() {
			owner.Logf("log of %s %d:\n%s", program.Name(), program.Pid(), program.Output())
		}
	})
}

func (r *rig) secret(name string, data map[string]string) {
	r.Helper()
	testkit.Must(r, programs.SetSecret(r.Context(), r.client, r.namespace, name, data))
}

func (r *rig) configMap(name string, data map[string]string) {
	r.Helper()
	testkit.Must(r, programs.SetConfigMap(r.Context(), r.client, r.namespace, name, data))
}

// deploy creates a Deployment and waits until its pods are available.
func (r *rig) deploy(deployment *appsv1.Deployment) {
	r.Helper()
	if _, err := r.client.AppsV1().Deployments(r.namespace).Create(r.Context(), deployment, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	r.eventually("the pods of "+deployment.Name+" are available", func(ctx context.Context) bool {
		return r.deployment(deployment.Name).Status.AvailableReplicas == *deployment.Spec.Replicas
	})
}

func (r *rig) deployment(name string) *appsv1.Deployment {
	r.Helper()
	deployment, err := r.client.AppsV1().Deployments(r.namespace).Get(r.Context(), name, metav1.GetOptions{})
	testkit.Must(r, err)
	return deployment
}

// patchDeployment makes a merge patch of a Deployment.
func (r *rig) patchDeployment(name, patch string) {
	r.Helper()
	deployments := r.client.AppsV1().Deployments(r.namespace)
	if _, err := deployments.Patch(r.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

// eventually waits for a condition.
func (r *rig) eventually(what string, condition func(context.Context) bool, details ...func() string) {
	r.Helper()
	testkit.Await(r.T, what, condition, details...)
}

// awaitLaterSecond waits until what is written next has a later time than what was written before: those of the API server are precise to a second.
func (r *rig) awaitLaterSecond() {
	r.Helper()
	now := time.Now().Unix()
	r.eventually("a second has passed", func(context.Context) bool { return time.Now().Unix() > now+1 })
}
