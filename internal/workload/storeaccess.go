package workload

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// StoreAccess contains the secrets in stores that namespaces may name in keyturn.dev/roll-on, besides those that their pods read. Otherwise, anyone
// who may edit a workload could learn which paths exist and when they are rotated. It is a file, as others may label namespaces, too.
type StoreAccess struct {
	Grants []StoreGrant `json:"grants"`
}

// StoreGrant lets the workloads of some namespaces name some secrets of a store.
type StoreGrant struct {
	// Namespaces are names, or patterns of names with * and ?. Required.
	Namespaces []string `json:"namespaces"`
	// Store is the name of a store, or * for every store. Required.
	Store string `json:"store"`
	// Paths are paths of secrets, each of which includes everything below it: <mount>/<path> without data/, preceded by the store's namespace if it
	// is not the root. A single * means every path. Required.
	Paths []string `json:"paths"`
}

// ReadStoreAccess reads the file of --store-access. If name is empty, it grants nothing. The error has a line for each problem.
func ReadStoreAccess(name string) (StoreAccess, error) {
	if name == "" {
		return StoreAccess{}, nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return StoreAccess{}, fmt.Errorf("--store-access: %w", err)
	}
	return parseStoreAccess(content)
}

// parseStoreAccess reads the content of the file, in YAML.
func parseStoreAccess(content []byte) (StoreAccess, error) {
	var access StoreAccess
	if err := kube.DecodeStrict(content, &access); err != nil {
		return StoreAccess{}, fmt.Errorf("--store-access: %w", err)
	}
	var problems []error
	for i, grant := range access.Grants {
		for _, problem := range grant.problems() {
			problems = append(problems, fmt.Errorf("--store-access: grants[%d].%s", i, problem))
		}
	}
	return access, errors.Join(problems...)
}

func (g *StoreGrant) problems() []string {
	var problems []string
	if len(g.Namespaces) == 0 {
		problems = append(problems, "namespaces: is empty, want names of namespaces or patterns such as team-*")
	}
	for i, name := range g.Namespaces {
		if len(validation.IsDNS1123Label(name)) > 0 && !validGlob(name) {
			problems = append(problems, fmt.Sprintf("namespaces[%d]: %q, want the name of a namespace or a pattern such as team-*", i, name))
		}
	}
	if g.Store != everything && len(validation.IsDNS1123Label(g.Store)) > 0 {
		problems = append(problems, fmt.Sprintf("store: %q, want the name of a store, or * for every store", g.Store))
	}
	if len(g.Paths) == 0 {
		problems = append(problems, "paths: is empty, want paths such as kv/shop, or *")
	}
	for i, path := range g.Paths {
		if path != everything && (strings.Trim(path, "/") != path || path == "" || strings.ContainsAny(path, "*?")) {
			problems = append(problems,
				fmt.Sprintf("paths[%d]: %q, want a path without slashes around it and without patterns, such as kv/shop, or *", i, path))
		}
	}
	return problems
}

// everything stands for every store, and for every path.
const everything = "*"

// granted are the grants of one namespace.
type granted []StoreGrant

// of returns the grants of a namespace.
func (a StoreAccess) of(namespace string) granted {
	var list granted
	for _, grant := range a.Grants {
		if slices.ContainsFunc(grant.Namespaces, func(name string) bool { return glob(name).MatchString(namespace) }) {
			list = append(list, grant)
		}
	}
	return list
}

// allow reports whether a secret in a store may be named.
func (g granted) allow(source events.Source) bool {
	path, err := source.StorePath()
	return err == nil && g.cover(path.Store, path.Full())
}

// cover reports whether a path may be named. If store is empty, a grant for any store is enough.
func (g granted) cover(store, path string) bool {
	return slices.ContainsFunc(g, func(grant StoreGrant) bool {
		return (grant.Store == everything || grant.Store == store || store == "") && slices.ContainsFunc(grant.Paths, func(above string) bool {
			return above == everything || above == path || strings.HasPrefix(path, above+"/")
		})
	})
}

// grant limits items about stores to granted secrets and those that pods read. It returns a problem for each item that then matches nothing.
func (o OptIn) grant(granted granted, refs []Reference) []error {
	var problems itemErrors
	for i := range o.include {
		r := &o.include[i]
		if r.kind != events.KindOpenBao || r.name == nil {
			continue
		}
		r.granted = granted
		if r.namesNothing() && !slices.ContainsFunc(refs, r.means) {
			problems.fail(r.annotation, r.item, "this namespace may not name it: "+
				"allowed are paths that the pods are seen to read, and those that --store-access grants")
		}
	}
	return problems.list()
}

// mayName reports whether the rule, which covers the source, applies even if the pods are not known to read the source.
func (r *rule) mayName(source events.Source) bool {
	return r.kind != events.KindOpenBao || r.name == nil || r.granted.allow(source)
}

// names reports whether the rule, which covers the source, names it and may do so.
func (r *rule) names(source events.Source) bool { return r.reason == byName && r.mayName(source) }

// namesNothing reports whether the rule names only secrets in stores that are not granted.
func (r *rule) namesNothing() bool {
	if r.kind != events.KindOpenBao || r.name == nil {
		return false
	}
	if path, exact := r.name.(exactly); exact {
		return !r.granted.cover(r.store, string(path)) && !r.granted.cover(r.store, withoutData(string(path)))
	}
	return len(r.granted) == 0
}

// means reports whether the rule may refer to a reference of the pods, in any store.
func (r *rule) means(ref Reference) bool {
	path, exact := r.name.(exactly)
	return ref.Kind == r.kind && (r.name.MatchString(ref.Name) || r.name.MatchString(withoutData(ref.Name)) ||
		exact && withoutData(string(path)) == ref.Name)
}

// withoutData converts a path from the API form of a KV v2 engine, with "data", to that of the store's command line.
func withoutData(path string) string { return strings.Replace(path, "/data/", "/", 1) }
