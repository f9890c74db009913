package install

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testbed"
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
	if err := plane.ApplyYAML(t.Context(), bytes.NewReader(renderOverlay(t, namespace, content))); err != nil {
		t.Fatal(err)
	}
}

// renderOverlay returns the manifests of such a kustomization.
func renderOverlay(t *testing.T, namespace, content string) []byte {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "deploy"), os.DirFS("../../deploy")); err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(root, "overlay")
	if err := os.Mkdir(overlay, 0o750); err != nil {
		t.Fatal(err)
	}
	content = strings.ReplaceAll(content, "SERVED", namespace)
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	rendered, err := testbed.Kustomize(t.Context(), os.Stderr, overlay)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}
