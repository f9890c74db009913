package build

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// extractCRDs returns a function that copies the folder of an operator's module with its custom resource definitions next
// to its binary.
func extractCRDs(folder string) func(moduleDir, dir string) error {
	return func(moduleDir, dir string) error {
		// Remove what an interrupted build may have left.
		if err := os.RemoveAll(CRDsPath(dir)); err != nil {
			return fmt.Errorf("remove custom resource definitions: %w", err)
		}
		from := os.DirFS(filepath.Join(moduleDir, filepath.FromSlash(folder)))
		if err := os.CopyFS(CRDsPath(dir), from); err != nil {
			return fmt.Errorf("copy custom resource definitions: %w", err)
		}
		// Some folders also have a list of their files, which is not an object of a cluster.
		if err := os.RemoveAll(filepath.Join(CRDsPath(dir), "kustomization.yaml")); err != nil {
			return fmt.Errorf("remove the list of custom resource definitions: %w", err)
		}
		return nil
	}
}

// extractCRD returns a function that copies one custom resource definition out of a file with all objects of an operator.
func extractCRD(file, name string) func(moduleDir, dir string) error {
	return func(moduleDir, dir string) error {
		all, err := os.ReadFile(filepath.Join(moduleDir, filepath.FromSlash(file)))
		if err != nil {
			return fmt.Errorf("read the objects of an operator: %w", err)
		}
		for document := range bytes.SplitSeq(all, []byte("\n---\n")) {
			if !bytes.Contains(document, []byte("\nkind: CustomResourceDefinition\n")) || !bytes.Contains(document, []byte("\n  name: "+name+"\n")) {
				continue
			}
			if err := os.MkdirAll(CRDsPath(dir), 0o755); err != nil {
				return fmt.Errorf("make the folder of custom resource definitions: %w", err)
			}
			if err := os.WriteFile(filepath.Join(CRDsPath(dir), name+".yaml"), document, 0o644); err != nil {
				return fmt.Errorf("write a custom resource definition: %w", err)
			}
			return nil
		}
		return fmt.Errorf("%s has no custom resource definition %s", file, name)
	}
}

// CRDsPath returns the folder of an operator's custom resource definitions in the folder of its binary.
func CRDsPath(dir string) string { return filepath.Join(dir, "crds") }

// extractArgoCD copies Argo CD's custom resource definitions, its configuration as upstream installs it, and the script that its repository
// server looks for in PATH.
func extractArgoCD(moduleDir, dir string) error {
	if err := extractCRDs("manifests/crds")(moduleDir, dir); err != nil {
		return err
	}
	for from, to := range map[string]string{
		"manifests/base/config/argocd-cm.yaml": ArgoCDConfigPath(dir), "hack/git-verify-wrapper.sh": filepath.Join(dir, "git-verify-wrapper.sh"),
	} {
		if err := copyFile(filepath.Join(moduleDir, filepath.FromSlash(from)), to); err != nil {
			return fmt.Errorf("copy %s: %w", from, err)
		}
	}
	return nil
}

// ArgoCDConfigPath returns the path of Argo CD's configuration, a ConfigMap without a namespace, in the folder of its binary.
func ArgoCDConfigPath(dir string) string { return filepath.Join(dir, "argocd-cm.yaml") }
