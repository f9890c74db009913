package install

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

// imageOverlay is deploy/keys with an image of the operator's.
const imageOverlay = `
resources: [../deploy/keys]
namespace: SERVED
images: [{name: keyturn, newName: registry.example.com/keyturn, newTag: TAG}]
patches:
  - target: {kind: Job, name: keyturn-keys}
    patch: |
      - {op: replace, path: /spec/template/spec/containers/0/args/0, value: --namespace=SERVED}
`

// The template of a Job is immutable, and a pod without an image waits for it for ever.
func TestAfterAWrongImageTheRightOneIsAppliedAndMakesTheKeys(t *testing.T) {
	t.Parallel()
	k := newKubelet(t, plane.Namespace(t))
	var pod corev1.Pod
	for _, tag := range []string{"v0.1.O", "v0.1.0"} {
		applyOverlay(t, k.namespace, strings.ReplaceAll(imageOverlay, "TAG", tag))
		testkit.Await(t, "there is a pod of "+tag, func(context.Context) bool {
			pods := k.pods("keys")
			at := slices.IndexFunc(pods, func(pod corev1.Pod) bool {
				return pod.Spec.Containers[0].Image == "registry.example.com/keyturn:"+tag
			})
			if at >= 0 {
				pod = pods[at]
			}
			return at >= 0
		})
	}
	testkit.Await(t, "the Job succeeds", func(context.Context) bool { return k.end(k.runPod(&pod, "keys")) == nil })
	for _, name := range installationKeys {
		if len(k.secret(name)) == 0 {
			t.Errorf("the Secret %s is empty", name)
		}
	}
}
