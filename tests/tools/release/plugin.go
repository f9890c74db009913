package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const pluginName = "kubectl-keyturn"

// platform is one that the plugin is built for, as krew selects it.
type platform struct {
	Selector map[string]map[string]string `json:"selector"`
	URI      string                       `json:"uri"`
	SHA256   string                       `json:"sha256"`
	Bin      string                       `json:"bin"`
}

// plugin packs the binaries of the plugin, and writes the manifest by which krew installs them.
func (r release) plugin() error {
	folders, err := filepath.Glob(filepath.Join(r.binaries, "*_*"))
	if err != nil || len(folders) == 0 {
		return fmt.Errorf("-plugin: %s has no folder <os>_<architecture>", r.binaries)
	}
	var platforms []platform
	for _, folder := range folders {
		system, architecture, _ := strings.Cut(filepath.Base(folder), "_")
		p, err := r.packPlugin(folder, system, architecture)
		if err != nil {
			return err
		}
		platforms = append(platforms, p)
	}
	return r.krew(platforms)
}

// packPlugin packs the binary of one platform with the license.
func (r release) packPlugin(folder, system, architecture string) (platform, error) {
	built := "keyturn" // which is the plugin under another name
	p := platform{Bin: pluginName, Selector: map[string]map[string]string{"matchLabels": {"os": system, "arch": architecture}}}
	if system == "windows" {
		p.Bin, built = p.Bin+".exe", built+".exe"
	}
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return platform{}, err
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(
		copyFile(filepath.Join(r.root, "LICENSE"), filepath.Join(dir, "LICENSE"), 0o644),
		copyFile(filepath.Join(folder, built), filepath.Join(dir, p.Bin), 0o755),
	); err != nil {
		return platform{}, err
	}
	packed, err := r.pack(dir, "")
	if err != nil {
		return platform{}, err
	}
	file := fmt.Sprintf("%s_%s_%s_%s.tar.gz", pluginName, r.version, system, architecture)
	p.URI, p.SHA256 = source+"/releases/download/"+r.version+"/"+file, sha256Hex(packed)
	return p, r.write(file, packed)
}

// krew writes the manifest of the plugin, https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest.
func (r release) krew(platforms []platform) error {
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]string{"name": strings.TrimPrefix(pluginName, "kubectl-")},
		"spec": map[string]any{
			"version":          r.version,
			"homepage":         source,
			"shortDescription": "Show and control the rollouts of Keyturn",
			"description":      "Shows why a workload rolled or why it waits, and what changed, from the events of Keyturn.",
			"platforms":        platforms,
		},
	})
	if err != nil {
		return err
	}
	return r.write("krew.yaml", manifest)
}
