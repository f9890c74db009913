package plugin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// fileSettings are the flags of commands whose values in an installation are files in the actuator's pods.
var fileSettings = []string{"store-access", "targets-config"}

// fetchFile copies a file, or a folder of files, of the actuator's pods to dir, and returns the path of the copy. The pods must have it from a
// ConfigMap.
func (i *installation) fetchFile(ctx context.Context, path, dir string) (string, error) {
	volume, within := i.mounted(path)
	if volume == nil || volume.ConfigMap == nil {
		return "", fmt.Errorf("the file %s of the actuator comes from no ConfigMap", path)
	}
	data, err := i.configMap(ctx, volume.ConfigMap.Name)
	if err != nil {
		return "", err
	}
	names := make(map[string]string) // The volume may give keys other file names.
	for _, item := range volume.ConfigMap.Items {
		names[item.Key] = item.Path
	}
	folder := filepath.Join(dir, volume.Name)
	for key, content := range data {
		name, chosen := names[key]
		if len(names) > 0 && !chosen {
			continue
		}
		if !chosen {
			name = key
		}
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return "", fmt.Errorf("writing the file %s of the actuator: %w", path, err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("writing the file %s of the actuator: %w", path, err)
		}
	}
	return filepath.Join(folder, filepath.FromSlash(within)), nil
}
