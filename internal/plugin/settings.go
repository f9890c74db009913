package plugin

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/commands"
)

var reference = regexp.MustCompile(`\$\([A-Za-z_][A-Za-z0-9_]*\)`)

// unknown returns the names of the Secrets from which the actuator may have settings. The Secrets are not read. I is nil if there is no installation.
func (i *installation) unknown() []string {
	if i == nil {
		return nil
	}
	var names []string
	for _, from := range i.container.EnvFrom {
		if from.SecretRef != nil {
			names = append(names, from.SecretRef.Name)
		}
	}
	for _, variable := range i.container.Env {
		if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
			names = append(names, from.SecretKeyRef.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readSettings reads the settings of the actuator's container, except those from Secrets.
func (i *installation) readSettings(ctx context.Context) error {
	variables := make(map[string]string)
	i.environment = variables
	for _, from := range i.container.EnvFrom {
		if from.ConfigMapRef == nil {
			continue
		}
		data, err := i.configMap(ctx, from.ConfigMapRef.Name)
		if err != nil {
			return err
		}
		for name, value := range data {
			variables[from.Prefix+name] = value
		}
	}
	expand := func(text string) string {
		return reference.ReplaceAllStringFunc(text, func(found string) string {
			if value, known := variables[found[2:len(found)-1]]; known {
				return value
			}
			return found
		})
	}
	for _, variable := range i.container.Env {
		switch from := variable.ValueFrom; {
		case from == nil:
			variables[variable.Name] = expand(variable.Value)
		case from.ConfigMapKeyRef != nil:
			data, err := i.configMap(ctx, from.ConfigMapKeyRef.Name)
			if err != nil {
				return err
			}
			// If an optional key is missing, the variable stays unset.
			if value, there := data[from.ConfigMapKeyRef.Key]; there {
				variables[variable.Name] = value
			}
		}
	}
	i.settings = maps.Clone(variables)
	for name, value := range arguments(slices.Concat(i.container.Command, i.container.Args)) {
		i.settings[name] = expand(value)
	}
	return nil
}

// arguments returns the flags on a command line, by the names of their variables. A flag without a value is true.
func arguments(words []string) map[string]string {
	flags := make(map[string]string)
	last := ""
	for _, word := range words {
		name, isFlag := strings.CutPrefix(word, "--")
		switch {
		case isFlag:
			name, value, has := strings.Cut(name, "=")
			if last = ""; !has {
				last, value = name, "true"
			}
			flags[commands.EnvironmentVariable(name)] = value
		case last != "":
			flags[commands.EnvironmentVariable(last)], last = word, ""
		}
	}
	return flags
}

// configMap returns the data of a ConfigMap, or nil if it does not exist. It must be an optional one then, because the pods
// would not run without one that they need.
func (i *installation) configMap(ctx context.Context, name string) (map[string]string, error) {
	configMap, err := i.client.CoreV1().ConfigMaps(i.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, right{"get", "configmaps", i.namespace}.explain(err)
	}
	return configMap.Data, nil
}

// setting returns a variable that the flags of a command may take from the installation. It excludes how the pods reach NATS and the API server,
// because users reach them in another way.
func (i *installation) setting(name string) (string, bool) {
	if strings.HasPrefix(name, "KEYTURN_NATS_") || name == "KEYTURN_KUBECONFIG" {
		return "", false
	}
	value, set := i.settings[name]
	return value, set
}

// mounted returns the volume that has a file in the actuator's pods, and the path within the volume.
func (i *installation) mounted(file string) (*corev1.Volume, string) {
	for _, mount := range i.container.VolumeMounts {
		within, found := strings.CutPrefix(file, mount.MountPath)
		if !found || within != "" && !strings.HasPrefix(within, "/") {
			continue
		}
		volumes := i.actuator.Spec.Template.Spec.Volumes
		for v := range volumes {
			if volumes[v].Name == mount.Name {
				return &volumes[v], strings.TrimPrefix(path.Join(mount.SubPath, within), "/")
			}
		}
	}
	return nil, ""
}

// fileSettings are the flags of commands whose values in an installation are files in the actuator's pods.
var fileSettings = []string{"store-access", "targets-config"}

// fetchFiles sets the flags whose values are files in the actuator's pods to copies of those files.
func (p *Plugin) fetchFiles(ctx context.Context, flags *pflag.FlagSet) error {
	for _, name := range fileSettings {
		flag := flags.Lookup(name)
		file := p.installed.settings[commands.EnvironmentVariable(name)]
		if flag == nil || flag.Changed || file == "" {
			continue
		}
		var err error
		if p.files == "" {
			if p.files, err = os.MkdirTemp("", "kubectl-keyturn-"); err != nil {
				return fmt.Errorf("--%s: %w", name, err)
			}
		}
		if file, err = p.installed.fetchFile(ctx, file, p.files); err != nil {
			return fmt.Errorf("%w; give it with --%s", err, name)
		}
		if err := flags.Set(name, file); err != nil {
			return err
		}
	}
	return nil
}

// fetchFile copies a file, or a folder of files, of the actuator's pods to dir, and returns the path of the copy. The pods must have it from a
// ConfigMap.
func (i *installation) fetchFile(ctx context.Context, file, dir string) (string, error) {
	volume, within := i.mounted(file)
	if volume == nil || volume.ConfigMap == nil {
		return "", fmt.Errorf("the file %s of the actuator comes from no ConfigMap", file)
	}
	data, err := i.configMap(ctx, volume.ConfigMap.Name)
	if err != nil {
		return "", err
	}
	contents := data
	if items := volume.ConfigMap.Items; len(items) > 0 { // The volume has only some keys, perhaps under other names.
		contents = make(map[string]string)
		for _, item := range items {
			contents[item.Path] = data[item.Key]
		}
	}
	folder := filepath.Join(dir, volume.Name)
	for name, content := range contents {
		copied := filepath.Join(folder, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(copied), 0o700)
		if err == nil {
			err = os.WriteFile(copied, []byte(content), 0o600)
		}
		if err != nil {
			return "", fmt.Errorf("writing the file %s of the actuator: %w", file, err)
		}
	}
	return filepath.Join(folder, filepath.FromSlash(within)), nil
}
