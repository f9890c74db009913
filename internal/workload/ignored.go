package workload

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// neverRolled are kinds that are valid to ignore, although they are not in the table and never rolled anyway.
var neverRolled = []string{"job", "jobs"}

// Without returns the table without the named kinds. A name is the lower-case singular or plural: cronjob, cronjobs.
func (t Kinds) Without(names []string) (Kinds, error) {
	ignored := make(map[string]bool)
	for _, name := range names {
		i := slices.IndexFunc(t, func(k Kind) bool {
			return name == k.Name || name == k.Name+"s" || k.plural != "" && name == k.plural
		})
		switch {
		case i >= 0:
			ignored[t[i].Name] = true
		case !slices.Contains(neverRolled, name):
			return nil, fmt.Errorf("%q, want any of %s, or their plurals", name, strings.Join(append(t.Names(), neverRolled[0]), ", "))
		}
	}
	kept := slices.DeleteFunc(slices.Clone(t), func(k Kind) bool { return ignored[k.Name] })
	if len(kept) == 0 {
		return nil, errors.New("all kinds of workloads, want one left")
	}
	return kept, nil
}
