package project

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// The admission policy has the same limits for the names in a path and for the number of paths, because the API server bounds the cost of its
// expressions.
const (
	maxNames = 8
	maxPaths = 16
)

// config is the file of --projections-config.
type config struct {
	Projections []kindConfig `json:"projections"`
}

// kindConfig lists the values that resources of a kind may have. All fields are required.
type kindConfig struct {
	// APIVersion, Kind and Resource are as in the API: example.org/v1, Widget, widgets.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Resource   string `json:"resource"`
	// Paths lists the fields that may be written, in the syntax of kube.FieldPath. They are below spec, and not inside lists.
	Paths []string `json:"paths"`
	// Secrets lists the Secrets that may be read. A resource can only name those in its own namespace.
	Secrets []secretConfig `json:"secrets"`
}

// secretConfig names a Secret and those of its keys that may be read. All fields are required.
type secretConfig struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Keys      []string `json:"keys"`
}

// kind is a kind of resources that may have values of Secrets.
type kind struct {
	config   kindConfig
	name     string // in lower case
	resource schema.GroupVersionResource
	// pointers has the JSON pointers of the paths.
	pointers map[string]bool
	// keys contains the readable keys of each Secret.
	keys map[source][]string
}

type source struct{ namespace, name string }

// namespaces returns the namespaces with Secrets for the kind. Its resources are watched only there.
func (k *kind) namespaces() []string {
	var list []string
	for s := range k.keys {
		list = append(list, s.namespace)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// parseConfig reads the configuration. The error has a line for each problem.
func parseConfig(content []byte) ([]*kind, error) {
	var c config
	if err := kube.DecodeStrict(content, &c); err != nil {
		return nil, fmt.Errorf("--projections-config: %w", err)
	}
	if len(c.Projections) == 0 {
		return nil, errors.New("--projections-config: projections: is empty, want at least one")
	}
	var kinds []*kind
	var all []error
	names := map[string]bool{}
	for i, one := range c.Projections {
		p := problems{}
		k := p.kind(one)
		if names[k.name] {
			p.add("kind: %q is used twice, want each kind once", one.Kind)
		}
		names[k.name] = true
		for _, problem := range p.list {
			all = append(all, fmt.Errorf("--projections-config: projections[%d].%s", i, problem))
		}
		kinds = append(kinds, k)
	}
	return kinds, errors.Join(all...)
}

type problems struct{ list []string }

func (p *problems) add(form string, values ...any) {
	p.list = append(p.list, fmt.Sprintf(form, values...))
}

func (p *problems) kind(c kindConfig) *kind {
	group, version, _ := strings.Cut(c.APIVersion, "/")
	k := &kind{
		config: c, name: strings.ToLower(c.Kind), resource: schema.GroupVersionResource{Group: group, Version: version, Resource: c.Resource},
		pointers: map[string]bool{}, keys: map[source][]string{},
	}
	switch err := events.ValidateWorkloadKind(k.name, c.APIVersion, c.Resource); {
	case err != nil:
		p.add("%s", err)
	case strings.ToUpper(c.Kind[:1]) != c.Kind[:1]:
		p.add("kind: %q, want the kind of a custom resource, such as Widget", c.Kind)
	case strings.HasSuffix(group, ".k8s.io"):
		p.add("apiVersion: %q is not of a custom resource that may have values of Secrets", c.APIVersion)
	}
	switch {
	case len(c.Paths) == 0:
		p.add("paths: is empty, want the fields that may be written")
	case len(c.Paths) > maxPaths:
		p.add("paths: has %d, want at most %d", len(c.Paths), maxPaths)
	}
	for i, text := range c.Paths {
		field, problem := fieldOf(text)
		if problem != "" {
			p.add("paths[%d]: %q %s", i, text, problem)
		}
		k.pointers[field.pointer] = true
	}
	if len(c.Secrets) == 0 {
		p.add("secrets: is empty, want the Secrets that may be read")
	}
	for i, s := range c.Secrets {
		p.secret(fmt.Sprintf("secrets[%d].", i), s)
		of := source{namespace: s.Namespace, name: s.Name}
		k.keys[of] = append(k.keys[of], s.Keys...)
	}
	return k
}

func (p *problems) secret(at string, c secretConfig) {
	if len(validation.IsDNS1123Label(c.Namespace)) > 0 {
		p.add("%snamespace: %q, want the name of a namespace", at, c.Namespace)
	}
	if len(validation.IsDNS1123Subdomain(c.Name)) > 0 {
		p.add("%sname: %q, want the name of a Secret", at, c.Name)
	}
	if len(c.Keys) == 0 {
		p.add("%skeys: is empty, want the keys that may be read", at)
	}
	for i, key := range c.Keys {
		if len(validation.IsConfigMapKey(key)) > 0 {
			p.add("%skeys[%d]: %q, want the key of a Secret", at, i, key)
		}
	}
}

// fieldOf returns the wish for a field, without the key, or the reason why the field cannot be written.
func fieldOf(text string) (w wish, problem string) {
	path, err := kube.ParseFieldPath(text)
	if err != nil {
		return wish{}, err.Error()
	}
	names, plain := path.Names()
	switch {
	case !plain || len(names) < 2 || names[0] != "spec":
		return wish{}, "is not a field below spec, or goes through a list"
	case len(names) > maxNames:
		return wish{}, fmt.Sprintf("has more than %d names", maxNames)
	}
	return wish{path: path, pointer: kube.JSONPointer(names...), names: names}, ""
}
