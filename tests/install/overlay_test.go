package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// servedAlone is the end of an overlay of deploy/namespaced: its patches have all of it in the namespace that is served.
const servedAlone = `  - target: {kind: Role|RoleBinding, name: keyturn-watcher|keyturn-actuator}
    patch: |
      - {op: replace, path: /metadata/namespace, value: SERVED}
  - target: {kind: Namespace}
    patch: |
      $patch: delete
      apiVersion: v1
      kind: Namespace
      metadata: {name: keyturn-system}
`

// applyOverlay applies what an operator would have as a kustomization beside deploy. SERVED in it is a namespace that is there.
func applyOverlay(t *testing.T, namespace, content string) {
	t.Helper()
	apply(t, string(renderOverlay(t, namespace, content)))
}

// apply applies manifests.
func apply(t *testing.T, manifests string) {
	t.Helper()
	testkit.Must(t, plane.ApplyYAML(t.Context(), strings.NewReader(manifests)))
}

// renderOverlay returns the manifests of such a kustomization.
func renderOverlay(t *testing.T, namespace, content string) []byte {
	t.Helper()
	root := t.TempDir()
	testkit.Must(t, os.CopyFS(filepath.Join(root, "deploy"), os.DirFS("../../deploy")))
	overlay := filepath.Join(root, "overlay")
	testkit.WriteFile(t, filepath.Join(overlay, "kustomization.yaml"), strings.ReplaceAll(content, "SERVED", namespace))
	rendered, err := testbed.Kustomize(t.Context(), os.Stderr, overlay)
	testkit.Must(t, err)
	return rendered
}
