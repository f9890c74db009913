package install

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/releases"
)

// TestTheFilesOfAReleaseAreAppliedAsTheyAre applies install.yaml and install-namespaced.yaml of a release, and waits until the API server has taken
// every pod of theirs.
func TestTheFilesOfAReleaseAreAppliedAsTheyAre(t *testing.T) {
	testkit.Nightly(t)
	r, tool := newRelease(t), releases.New(t)
	c := &commands{release: r, dir: tool.Make("registry.example.com"), kubeconfig: plane.Kubeconfig()}
	image := "registry.example.com/keyturn:" + tool.Version
	for _, file := range []string{"install.yaml", "install-namespaced.yaml"} {
		r.part(file+" is applied", func() {
			// As docs/how-to/install.md says.
			served := strings.ReplaceAll(string(tool.Read(c.dir, file)), "team-a", r.namespace)
			testkit.WriteFile(t, filepath.Join(c.dir, file), served)
			c.shell("kubectl apply --server-side -f " + file)
			for _, program := range []string{"keys", "actuator", "watcher"} {
				testkit.Await(t, fmt.Sprintf("there is a pod of the %s with the image of the release", program), func(context.Context) bool {
					return slices.ContainsFunc(r.kubelet.pods(program), func(pod corev1.Pod) bool {
						return pod.DeletionTimestamp == nil && pod.Spec.Containers[0].Image == image
					})
				})
			}
			// The namespace stays: the next file could not be applied while it is being deleted.
			c.shell("kubectl delete -l app.kubernetes.io/part-of=keyturn --ignore-not-found clusterroles,clusterrolebindings,priorityclasses," +
				"validatingadmissionpolicies,validatingadmissionpolicybindings")
			r.clear()
		})
	}
}
