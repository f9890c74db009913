package testbed

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestDeploymentRolls(t *testing.T) {
	namespace := bed.Namespace(t)
	deployments := bed.client.AppsV1().Deployments(namespace)
	created, err := deployments.Create(t.Context(), deployment("api", 3), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waitRolledOut(t, bed.client, created)

	patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"turned":"yes"}}}}}`)
	changed, err := deployments.Patch(t.Context(), "api", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if changed.Generation == created.Generation {
		t.Fatal("the patch did not change the template")
	}
	start := time.Now()
	waitRolledOut(t, bed.client, changed)
	t.Logf("rollout of 3 replicas: %v", time.Since(start))
}

func TestServiceAccountHasOnlyItsRights(t *testing.T) {
	namespace := bed.Namespace(t)
	err := bed.ApplyYAML(t.Context(), unordered(namespace), RBACKinds()...)
	if err != nil {
		t.Fatal(err)
	}
	path, err := bed.ServiceAccountKubeconfig(t.Context(), namespace, "reader")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	if _, err := client.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("list what is granted: %v", err)
	}
	if _, err := client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list what is not granted: %v, want forbidden", err)
	}
	_, err = bed.ServiceAccountConfig(t.Context(), namespace, "nobody")
	if !apierrors.IsNotFound(err) {
		t.Errorf("token of an account that does not exist: %v, want not found", err)
	}
}

func TestAuditShowsRequests(t *testing.T) {
	namespace := bed.Namespace(t)
	offset, err := bed.AuditEnd()
	if err != nil {
		t.Fatal(err)
	}
	config, err := bed.ServiceAccountConfig(t.Context(), namespace, "default")
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	_, err = client.CoreV1().Secrets(namespace).Get(t.Context(), "db", metav1.GetOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("%v, want forbidden", err)
	}

	var got []AuditEntry
	testkit.Await(t, "the request is in the audit log", func(context.Context) bool {
		entries, next, err := bed.AuditSince(offset)
		if err != nil {
			t.Fatal(err)
		}
		offset = next
		got = append(got, Requests(entries, ServiceAccountUser(namespace, "default"))...)
		return len(got) > 0
	})
	if len(got) != 1 {
		t.Fatalf("%d requests, want 1: %+v", len(got), got)
	}
	e := got[0]
	if e.Verb != "get" || e.Resource != "secrets" || e.Namespace != namespace || e.Name != "db" || e.Code != 403 ||
		e.Stage != "ResponseComplete" || e.AuditID == "" || e.At.Before(e.Received) {
		t.Errorf("unexpected entry %+v", e)
	}
}

func TestAPIServerRestarts(t *testing.T) {
	namespace := bed.Namespace(t)
	bed.KillAPIServer()
	if _, err := bed.client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err == nil {
		t.Error("the API server answers after it was killed")
	}
	start := time.Now()
	if err := bed.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("restart of the API server: %v", time.Since(start))
	if err := bed.StartAPIServer(t.Context()); err == nil {
		t.Error("a second API server was started")
	}
	deployments := bed.client.AppsV1().Deployments(namespace)
	created, err := deployments.Create(t.Context(), deployment("after", 1), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waitRolledOut(t, bed.client, created)
}

func TestStopLeavesNothing(t *testing.T) {
	cp, err := Start(t.Context(), Options{WithoutControllers: true})
	if err != nil {
		t.Fatal(err)
	}
	processes := cp.Processes()
	start := time.Now()
	cp.Stop()
	t.Logf("stop: %v", time.Since(start))
	cp.Stop()
	if len(processes) != 3 {
		t.Errorf("%d processes, want 3", len(processes))
	}
	for _, p := range processes {
		if err := syscall.Kill(p.Pid(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s, pid %d: %v, want no such process", p.Name(), p.Pid(), err)
		}
	}
	if _, err := os.Stat(cp.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if err := cp.StartAPIServer(t.Context()); err == nil {
		t.Error("a server was started after Stop")
	}
}

func TestStartSaysWhyNot(t *testing.T) {
	_, err := Start(t.Context(), Options{APIServerArgs: []string{"--no-such-flag"}})
	if !errors.Is(err, process.ErrExited) {
		t.Fatalf("%v, want %v", err, process.ErrExited)
	}
	if !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("the log is not in the error: %v", err)
	}
}

func TestMemoryOfControlPlane(t *testing.T) {
	var total int64
	for _, p := range bed.Processes() {
		if p.Ended() { // an operator that another test has stopped
			continue
		}
		memory, err := p.Memory()
		if err != nil {
			t.Fatal(err)
		}
		used, err := p.CPU()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-24s %4d MB, %v of processor time", p.Name(), memory.RSS>>20, used)
		total += memory.RSS
	}
	t.Logf("%-24s %4d MB", "all", total>>20)
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			},
		},
	}
}

func waitRolledOut(t *testing.T, client kubernetes.Interface, d *appsv1.Deployment) {
	t.Helper()
	testkit.Await(t, "deployment "+d.Name+" has rolled out", func(ctx context.Context) bool {
		got, err := client.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want, s := *got.Spec.Replicas, got.Status
		return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.Replicas == want &&
			s.AvailableReplicas == want
	})
}
