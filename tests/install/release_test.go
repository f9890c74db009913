package install

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

const chart = "../../deploy/chart"

var (
	// operatorsValues are those of docs/how-to/install.md, and a flag that shortens the wait for a workload.
	operatorsValues = []string{
		"--set", "cluster=prod-eu", "--set", "image.repository=registry.example.com/keyturn", "--set", "image.tag=v0.1.0",
		"--set", "env.KEYTURN_SETTLE=50ms",
	}
	// untilReady has Helm wait until pods are ready, which they are on the simulated node as soon as they have it.
	untilReady = []string{"--wait", "--timeout", testkit.Patience.String()}
)

// release is an installation by Helm.
type release struct {
	*installation
	binary, home string
	// made is the objects of the chart.
	made []*unstructured.Unstructured
}

func newRelease(t *testing.T) *release {
	t.Helper()
	r := &release{installation: newInstallation(t, plane.Namespace(t)), home: t.TempDir(), binary: build.Tool(t, build.Helm)}
	out := r.helm(slices.Concat([]string{"template", "keyturn", chart, "--skip-tests"}, operatorsValues)...)
	var err error
	if r.made, err = testbed.ReadManifests(strings.NewReader(out)); err != nil {
		t.Fatal(err)
	}
	// Another test may have made some of them, and Helm does not take over what others have made.
	r.clear()
	t.Cleanup(r.clear)
	return r
}

// helm runs helm, which must succeed, and returns its output.
func (r *release) helm(args ...string) string {
	r.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.Fatalf("helm %s: %v\n%s", args[0], err, out)
	}
	return out
}

// try runs a command of helm as the cluster's admin, without anything of the user's configuration.
func (r *release) try(args ...string) (string, error) {
	cmd := exec.CommandContext(r.Context(), r.binary, append(args, "--namespace", programs.SystemNamespace)...)
	cmd.Env = []string{"HOME=" + r.home, "KUBECONFIG=" + plane.Kubeconfig()}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// stop ends both programs, the watcher first.
func (r *release) stop() {
	r.Helper()
	r.watcher.StopIn(r.T, testkit.Patience)
	r.actuator.StopIn(r.T, testkit.Patience)
}

// eventuallyPods waits until there are so many pods of a program, and all of them have an image with the tag.
func (r *release) eventuallyPods(program string, count int, tag string) {
	r.Helper()
	testkit.Await(r.T, fmt.Sprintf("there are %d pods of the %s, of %q", count, program, tag), func(context.Context) bool {
		pods := r.kubelet.pods(program)
		return len(pods) == count && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
			return pod.Spec.Containers[0].Image != "registry.example.com/keyturn:"+tag
		})
	})
}

// history is how many revisions of the release Helm has on record.
func (r *release) history() int {
	r.Helper()
	records, err := r.kube.CoreV1().Secrets(programs.SystemNamespace).List(r.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=keyturn"})
	testkit.Must(r, err)
	return len(records.Items)
}

// versions returns versions that show a change of the chart's objects: the generation, which ignores the status, if there is one.
// It includes the objects that must not be created anew.
func (r *release) versions() map[string]string {
	r.Helper()
	versions := r.kept()
	for _, object := range r.made {
		name := object.GetKind() + " " + object.GetName()
		now, err := r.resource(object).Get(r.Context(), object.GetName(), metav1.GetOptions{})
		if err != nil {
			r.Fatalf("%s: %v", name, err)
		}
		versions[name] = fmt.Sprint("generation ", now.GetGeneration())
		if now.GetGeneration() == 0 {
			versions[name] = "version " + now.GetResourceVersion()
		}
	}
	for _, program := range []string{"watcher", "actuator"} {
		pod := r.kubelet.pod(program)
		versions["Pod "+pod.Name] = string(pod.UID)
	}
	return versions
}

func (r *release) same(before map[string]string) {
	r.Helper()
	if diff := cmp.Diff(before, r.versions()); diff != "" {
		r.Errorf("versions (-before +after):\n%s", diff)
	}
}

// kept are what an installation has and the chart does not make: the keys, by their versions, and the volume's claim,
// whose status changes, by its identity.
func (r *release) kept() map[string]string {
	r.Helper()
	kept := map[string]string{}
	for _, name := range installationKeys {
		secret, err := r.kube.CoreV1().Secrets(programs.SystemNamespace).Get(r.Context(), name, metav1.GetOptions{})
		testkit.Must(r, err)
		kept["Secret "+name] = secret.ResourceVersion
	}
	claim, err := r.kube.CoreV1().PersistentVolumeClaims(programs.SystemNamespace).Get(r.Context(), "data-keyturn-actuator-0", metav1.GetOptions{})
	testkit.Must(r, err)
	kept["PersistentVolumeClaim "+claim.Name] = string(claim.UID)
	return kept
}
