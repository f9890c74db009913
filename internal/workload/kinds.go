package workload

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds is a table of kinds.
type Kinds []Kind

// BuiltIn returns the kinds of Kubernetes itself.
func BuiltIn() Kinds { return Kinds{deployments, statefulSets, daemonSets, cronJobs} }

// ArgoRollout returns the kind Rollout of Argo Rollouts.
func ArgoRollout() Kind { return argoRollouts }

// With returns the table with k replacing the kind of the same name.
func (t Kinds) With(k Kind) Kinds {
	table := slices.Clone(t)
	for i := range table {
		if table[i].Name == k.Name {
			table[i] = k
		}
	}
	return table
}

// Names returns the names of the kinds.
func (t Kinds) Names() []string {
	names := make([]string, 0, len(t))
	for _, k := range t {
		names = append(names, k.Name)
	}
	return names
}

// Named returns the kind with the given name, and false if there is none.
func (t Kinds) Named(name string) (Kind, bool) {
	return t.find(func(k Kind) bool { return k.Name == name })
}

// Resources returns the API resources of the kinds.
func (t Kinds) Resources() []schema.GroupResource {
	all := make([]schema.GroupResource, 0, len(t))
	for _, k := range t {
		name, _, _ := strings.Cut(k.Resource, ".")
		all = append(all, schema.FromAPIVersionAndKind(k.APIVersion, k.Title).GroupVersion().WithResource(name).GroupResource())
	}
	return all
}

func (t Kinds) find(is func(Kind) bool) (Kind, bool) {
	if i := slices.IndexFunc(t, is); i >= 0 {
		return t[i], true
	}
	return Kind{}, false
}

// Only returns the named kinds of the table. A name is the lower-case singular or plural: cronjob, cronjobs.
func (t Kinds) Only(names []string) (Kinds, error) {
	named := make(map[string]bool)
	for _, name := range names {
		k, known := t.find(func(k Kind) bool { return name == k.Name || name == k.Name+"s" })
		if !known {
			return nil, fmt.Errorf("%q, want any of %s, or their plurals", name, strings.Join(t.Names(), ", "))
		}
		named[k.Name] = true
	}
	if len(named) == 0 {
		return nil, fmt.Errorf("is empty, want any of %s", strings.Join(t.Names(), ", "))
	}
	return slices.DeleteFunc(slices.Clone(t), func(k Kind) bool { return !named[k.Name] }), nil
}
