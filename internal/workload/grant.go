package workload

import (
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// grant limits the annotation items that name secrets in stores to the secrets granted to the namespace and those that the pods are seen to read.
// It returns a problem for each item that then matches nothing, up to maxItemErrors.
func (o OptIn) grant(granted granted, refs []Reference) []error {
	var problems itemErrors
	for i := range o.include {
		r := &o.include[i]
		if r.kind != events.KindOpenBao || r.name == nil {
			continue
		}
		r.granted = granted
		if r.namesNothing() && !slices.ContainsFunc(refs, r.means) {
			problems.fail(r.annotation, r.item, "this namespace may not name it",
				"allowed are paths that the pods are seen to read, and those that --store-access grants")
		}
	}
	return problems.list()
}

// mayName reports whether the rule, which covers the source, applies even if the pods are not seen to read the source.
func (r *rule) mayName(source events.Source) bool {
	return r.kind != events.KindOpenBao || r.name == nil || r.granted.allow(source)
}

// names reports whether the rule, which covers the source, names it and may do so.
func (r *rule) names(source events.Source) bool { return r.reason == byName && r.mayName(source) }

// namesNothing reports whether the rule names secrets in stores, none of which is granted.
func (r *rule) namesNothing() bool {
	if r.kind != events.KindOpenBao || r.name == nil {
		return false
	}
	if path, exact := r.name.(exactly); exact {
		return !r.granted.cover(r.store, string(path)) && !r.granted.cover(r.store, withoutData(string(path)))
	}
	return len(r.granted) == 0
}

// means reports whether the rule may refer to what the pods read, in any store.
func (r *rule) means(ref Reference) bool {
	path, exact := r.name.(exactly)
	return ref.Kind == r.kind && (r.name.match(ref.Name) || r.name.match(withoutData(ref.Name)) || exact && withoutData(string(path)) == ref.Name)
}

// withoutData converts a path from the form of the API of a KV v2 engine, with "data", to the form that the store's command line takes.
func withoutData(path string) string { return strings.Replace(path, "/data/", "/", 1) }
