package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// manifests returns what kustomize makes of a folder of deploy with the image of the release.
func (r release) manifests(folder string) ([]byte, error) {
	image, err := r.tag("keyturn", r.version)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	// Kustomize compares paths without their symbolic links.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	base, err := filepath.Abs(filepath.Join(r.root, "deploy", folder))
	if err != nil {
		return nil, err
	}
	if base, err = filepath.EvalSymlinks(base); err != nil {
		return nil, err
	}
	if base, err = filepath.Rel(dir, base); err != nil {
		return nil, err
	}
	overlay := fmt.Sprintf("resources: [%s]\nimages: [{name: keyturn, newName: %s, newTag: %s}]\n", base, image.Repository, image.TagStr())
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		return nil, err
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	manifests, err := made.AsYaml()
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "# Keyturn %s from deploy/%s: %s/blob/%s/docs/how-to/install.md\n%s", r.version, folder, source, r.version, manifests), nil
}
