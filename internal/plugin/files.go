package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/commands"
)

// copied are flags whose values are files in the actuator's pods. Commands use copies of them, and never the local file of that name.
var copied = []string{"store-access", "targets-config"}

// fetchFiles sets the flags for files in the actuator's pods to copies of the files. If files cannot be copied, their flags stay empty, and an error
// is returned.
func (p *Plugin) fetchFiles(ctx context.Context, flags *pflag.FlagSet) error {
	var missing []error
	for _, name := range copied {
		file := p.installed.settings[commands.EnvironmentVariable(name)]
		if file == "" {
			continue
		}
		var err error
		if p.files == "" {
			if p.files, err = os.MkdirTemp("", "keyturn-"); err != nil {
				return fmt.Errorf("copying the file %s of the actuator: %w", file, err)
			}
		}
		file, err = p.installed.fetchFile(ctx, file, p.files)
		missing = append(missing, err, flags.Set(name, file))
	}
	return errors.Join(missing...)
}

// fetchFile copies a file, or a folder of files, of the actuator's pods to dir, and returns the path of the copy. The pods must have it from a
// ConfigMap. Other API servers may return any names, so no name may lead out of dir.
func (i *installation) fetchFile(ctx context.Context, file, dir string) (string, error) {
	volume, within := i.mounted(file)
	if volume == nil || volume.ConfigMap == nil {
		return "", fmt.Errorf("the file %s of the actuator comes from no ConfigMap", file)
	}
	data, err := i.configMap(ctx, volume.ConfigMap.Name)
	if err != nil {
		return "", err
	}
	contents, field := data, "key of the ConfigMap "+volume.ConfigMap.Name
	if items := volume.ConfigMap.Items; len(items) > 0 { // The volume has only some keys, perhaps with other names.
		contents, field = make(map[string]string), "items[].path of the volume "+volume.Name
		for _, item := range items {
			contents[item.Path] = data[item.Key]
		}
	}
	folder, err := inside(dir, "volumes[].name", volume.Name)
	if err != nil {
		return "", err
	}
	for name, content := range contents {
		at, err := inside(folder, field, name)
		if err != nil {
			return "", err
		}
		if err := writeFile(at, content); err != nil {
			return "", fmt.Errorf("writing the file %s of the actuator: %w", file, err)
		}
	}
	if within == "" {
		return folder, nil
	}
	return inside(folder, "volumeMounts[].subPath with the rest of "+file, within)
}

// inside returns the path of a file in a folder. The name comes from a cluster. If it leads out of the folder, the error names its field.
func inside(folder, field, name string) (string, error) {
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) {
		return "", fmt.Errorf("%q is %q in the pods of the actuator, want a name that stays in its folder", field, name)
	}
	return filepath.Join(folder, local), nil
}

func writeFile(file, content string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(content), 0o600)
}
