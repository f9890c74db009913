package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// kindsFolder is the folder of an operator's custom resource definitions in the folder of its binary.
const kindsFolder = "crds"

// Kinds returns the folder of an operator's custom resource definitions. If necessary, it downloads the operator's module and copies them into the
// cache; the operator is not built.
func Kinds(ctx context.Context, name string) (string, error) {
	if err := checkEnvironment(); err != nil {
		return "", err
	}
	s, err := findServer(name)
	if err != nil {
		return "", err
	}
	if s.kinds == nil {
		return "", fmt.Errorf("%s has no custom resource definitions", name)
	}
	dir, err := cacheDir(s.folder(name))
	if err != nil {
		return "", err
	}
	if kinds := filepath.Join(dir, kindsFolder); isFolder(kinds) {
		return kinds, nil
	}
	place, err := newScratch(ctx)
	if err != nil {
		return "", err
	}
	defer place.remove()
	module, err := s.download(ctx, place)
	if err != nil {
		return "", fmt.Errorf("download %s %s: %w", name, s.version, err)
	}
	return s.saveKinds(ctx, module, dir)
}

// saveKinds copies an operator's custom resource definitions out of its module to the folder of its binary, unless they are there, and returns their
// folder.
func (s server) saveKinds(ctx context.Context, module, dir string) (string, error) {
	unlock, err := lockFile(ctx, filepath.Join(dir, ".kinds"))
	if err != nil {
		return "", err
	}
	defer unlock()
	kinds := filepath.Join(dir, kindsFolder)
	if isFolder(kinds) {
		return kinds, nil
	}
	// What an interrupted copy has left is no folder of this name.
	copied := kinds + ".tmp"
	if err := os.RemoveAll(copied); err != nil {
		return "", err
	}
	if err := s.kinds(module, copied); err != nil {
		return "", fmt.Errorf("copy custom resource definitions: %w", err)
	}
	return kinds, os.Rename(copied, kinds)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// extractCRDs returns a function that copies a folder of an operator's module with its custom resource definitions.
func extractCRDs(folder string) func(moduleDir, dir string) error {
	return func(moduleDir, dir string) error {
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(moduleDir, filepath.FromSlash(folder)))); err != nil {
			return err
		}
		// Some folders also have a list of their files, which is not an object of a cluster.
		return os.RemoveAll(filepath.Join(dir, "kustomization.yaml"))
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
			return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name+".yaml"), document, 0o644))
		}
		return fmt.Errorf("%s has no custom resource definition %s", file, name)
	}
}

// extractArgoCD copies Argo CD's configuration as upstream installs it, and the script that its repository server looks for in PATH.
func extractArgoCD(moduleDir, dir string) error {
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
