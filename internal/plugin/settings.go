package plugin

import (
	"context"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/commands"
)

var reference = regexp.MustCompile(`\$\([A-Za-z_][A-Za-z0-9_]*\)`)

// unknown returns the names of the Secrets from which the actuator may have settings. The Secrets are not read. I may be nil.
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

// configMap returns the data of a ConfigMap, or nil if it does not exist. In this case it must be optional, because the pods would not run otherwise.
func (i *installation) configMap(ctx context.Context, name string) (map[string]string, error) {
	configMap, err := i.client.CoreV1().ConfigMaps(i.namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, right{"get", "configmaps", "", i.namespace}.explain(err)
	}
	return configMap.Data, nil
}

// taken are the flags that commands take from an installation if the user has not set them, because they affect decisions. Whoever may write the
// ConfigMap or the StatefulSet sets them, so none may name a file, a destination or an action on this machine. Files are copied: see copied.
var taken = []string{
	"cluster", "dry-run", "ignore-namespaces", "jobs", "max-rolls-per-hour", "min-interval", "namespaces", "reload-in-place", "reloader", "roll-all",
	"roll-on-create", "roll-on-delete", "stores-from", "trace-url", "window", "workload-kinds",
}

// setting returns a variable of the installation if commands take its flag from there.
func (i *installation) setting(variable string) (string, bool) {
	if !slices.ContainsFunc(taken, func(flag string) bool { return commands.EnvironmentVariable(flag) == variable }) {
		return "", false
	}
	value, set := i.settings[variable]
	return value, set
}

// mounted returns the volume with a file of the actuator's pods, and the path within the volume.
func (i *installation) mounted(file string) (*corev1.Volume, string) {
	for _, mount := range i.container.VolumeMounts {
		within, found := strings.CutPrefix(file, mount.MountPath)
		if !found || within != "" && !strings.HasPrefix(within, "/") {
			continue
		}
		for v := range i.pods.Volumes {
			if i.pods.Volumes[v].Name == mount.Name {
				return &i.pods.Volumes[v], strings.TrimPrefix(path.Join(mount.SubPath, within), "/")
			}
		}
	}
	return nil, ""
}
