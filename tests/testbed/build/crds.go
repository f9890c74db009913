package build

import (
	"fmt"
	"os"
	"path/filepath"
)

// extractCRDs returns a function that copies the folder of an operator's module with its custom resource definitions next
// to its binary.
func extractCRDs(folder string) func(moduleDir, dir string) error {
	return func(moduleDir, dir string) error {
		// What a build that was cut short has left is in the way.
		if err := os.RemoveAll(CRDsPath(dir)); err != nil {
			return fmt.Errorf("remove custom resource definitions: %w", err)
		}
		from := os.DirFS(filepath.Join(moduleDir, filepath.FromSlash(folder)))
		if err := os.CopyFS(CRDsPath(dir), from); err != nil {
			return fmt.Errorf("copy custom resource definitions: %w", err)
		}
		// Some have a list of the files beside them, which is no object of a cluster.
		if err := os.RemoveAll(filepath.Join(CRDsPath(dir), "kustomization.yaml")); err != nil {
			return fmt.Errorf("remove the list of custom resource definitions: %w", err)
		}
		return nil
	}
}

// CRDsPath returns the folder of an operator's custom resource definitions in the folder of its binary.
func CRDsPath(dir string) string { return filepath.Join(dir, "crds") }
