package install

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// inPlaceOfTmp is where the program keeps its state in a container whose root is read-only.
const inPlaceOfTmp = "/dev/shm/keyturn-reloader"

// TestReloadersManifestNeedsOnlyTheImage holds that a manifest of Reloader works as it is with another image: its account, its rights, its
// probes, a root that is read-only, and no volume.
func TestReloadersManifestNeedsOnlyTheImage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /dev/shm")
	}
	removeAll(t, inPlaceOfTmp)
	t.Cleanup(func() { removeAll(t, inPlaceOfTmp) })
	i := newInstallation(t, plane.Namespace(t))
	i.kubelet.namespace = i.namespace
	i.prepare()
	shop := strings.ReplaceAll(shop(t, i.namespace), "keyturn.dev/roll-on: auto", `reloader.stakater.com/auto: "true"`)
	manifest := testkit.ReadFile(t, "testdata/reloader.yaml")
	for _, manifests := range []string{shop, strings.ReplaceAll(manifest, "NAMESPACE", i.namespace)} {
		apply(t, manifests)
	}
	pod := i.reloadersPod()
	var program *programs.Program
	i.part("its probes pass", func() { program = i.runReloader(pod) })
	read := []string{"web", "queue", "agent"}
	i.part("a changed Secret rolls what reads it", func() {
		before := i.revisions()
		i.secret("db", "two")
		i.rolled(before, read...)
		i.untouched(before, "api")
	})
	i.part("and starts a Job of the CronJob that reads it", i.startsAJob)
	i.part("the variable of Reloader is in the container that reads it", func() {
		deployment, err := i.kube.AppsV1().Deployments(i.namespace).Get(t.Context(), "web", metav1.GetOptions{})
		testkit.Must(t, err)
		env := deployment.Spec.Template.Spec.Containers[0].Env
		if !slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == "STAKATER_DB_SECRET" && v.Value != "" }) {
			t.Errorf("variables of web: got %v", env)
		}
	})
	i.part("a changed ConfigMap rolls what reads it, after a restart of the container", func() {
		program.StopIn(t, testkit.Patience)
		program = i.runReloader(pod)
		before := i.revisions()
		i.configMap("app", "two")
		i.rolled(before, "api")
		i.untouched(before, read...)
	})
	if !strings.Contains(program.Output(), inPlaceOfTmp) {
		t.Error("it does not say where its state is")
	}
}

// reloadersPod returns that of the Deployment, as soon as there is one.
func (i *installation) reloadersPod() *corev1.Pod {
	i.Helper()
	var pods []corev1.Pod
	testkit.Await(i.T, "there is a pod of reloader", func(ctx context.Context) bool {
		list, err := i.kube.CoreV1().Pods(i.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=reloader-reloader"})
		if err == nil {
			pods = list.Items
		}
		return len(pods) == 1
	})
	return &pods[0]
}

// runReloader runs the pod's container, and waits until its probes pass. What is not as in a cluster: the port, which others use and the test reads
// in the log, for which that is in JSON; and that the root of this machine can be written, in place of which there are no temporary files.
func (i *installation) runReloader(pod *corev1.Pod) *programs.Program {
	i.Helper()
	none := filepath.Join(i.kubelet.dir, "none")
	testkit.WriteFile(i.T, none, "")
	pod = pod.DeepCopy()
	container := &pod.Spec.Containers[0]
	container.Env = append(container.Env,
		corev1.EnvVar{Name: "TMPDIR", Value: filepath.Join(none, "tmp")},
		corev1.EnvVar{Name: "KEYTURN_METRICS_ADDR", Value: "127.0.0.1:0"}, corev1.EnvVar{Name: "KEYTURN_LOG_FORMAT", Value: "json"})
	program := i.kubelet.runPod(pod, "reloader")
	for _, probe := range []*corev1.Probe{container.ReadinessProbe, container.LivenessProbe} {
		path := probe.HTTPGet.Path
		testkit.Await(i.T, "the probe "+path+" passes", func(ctx context.Context) bool {
			status, _, err := program.Get(ctx, "metrics", path)
			return err == nil && status == http.StatusOK
		})
	}
	return program
}

func removeAll(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}
