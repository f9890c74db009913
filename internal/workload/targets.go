package workload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/kube"
)

// targetsFlag names the flag with the files of targets, in errors and explanations.
const targetsFlag = "--targets-config"

// ReadTargets reads the kinds of custom resources to roll from a YAML file or, if name is a folder, from its files that end in .yaml or .yml, in the
// order of their names. If name is empty, it returns none. The error has a line for each problem.
func ReadTargets(name string) (Kinds, error) {
	if name == "" {
		return nil, nil
	}
	files, err := targetFiles(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", targetsFlag, err)
	}
	var kinds Kinds
	var problems []error
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", targetsFlag, err))
			continue
		}
		of, err := parseTargets(content, filepath.Base(file), kinds)
		kinds = append(kinds, of...)
		problems = append(problems, err)
	}
	return kinds, errors.Join(problems...)
}

// targetFiles returns the files of a name. It skips names that begin with a dot, which the kubelet adds to the mounted folder of a ConfigMap.
func targetFiles(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(entry.Name())) && !strings.HasPrefix(entry.Name(), ".") {
			files = append(files, filepath.Join(name, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, errors.New("the folder has no file whose name ends in .yaml or .yml")
	}
	return files, nil
}

// parseTargets reads the content of a YAML file. Earlier contains the kinds of the files before it.
func parseTargets(content []byte, file string, earlier Kinds) (Kinds, error) {
	var config struct {
		Targets []TargetConfig `json:"targets"`
	}
	if err := kube.DecodeStrict(content, &config); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", targetsFlag, file, err)
	}
	var kinds Kinds
	var problems []error
	for i, c := range config.Targets {
		t, found := c.compile()
		k := t.kind()
		isLike := func(other Kind) bool { return other.Name == k.Name || other.Resource == k.Resource }
		if other, taken := slices.Concat(earlier, kinds).find(isLike); taken {
			found = append(found, fmt.Sprintf("name: %q is the name of %s, too, want another one for one of them", k.Name, other.Resource))
		}
		for _, problem := range found {
			problems = append(problems, fmt.Errorf("%s: %s: targets[%d].%s", targetsFlag, file, i, problem))
		}
		kinds = append(kinds, k)
	}
	return kinds, errors.Join(problems...)
}

// Owners maps the kinds that are rolled instead of the workloads that they control to their names in the table.
type Owners map[schema.GroupKind]string

// Owners returns the kinds that come from configuration.
func (t Kinds) Owners() Owners {
	owners := make(Owners)
	for _, k := range t {
		if k.plural != "" {
			owners[schema.FromAPIVersionAndKind(k.APIVersion, k.Title).GroupKind()] = k.Name
		}
	}
	return owners
}

// ownable are the kinds of Kubernetes itself that a target may control.
var ownable = []string{deployments.Name, statefulSets.Name, daemonSets.Name}

// Unwatched returns the kinds that a target may control and that are not in the table.
func (t Kinds) Unwatched() []string {
	return slices.DeleteFunc(slices.Clone(ownable), func(name string) bool { return slices.Contains(t.Names(), name) })
}
