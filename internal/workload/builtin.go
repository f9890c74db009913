package workload

import "slices"

// Kinds is a table of kinds.
type Kinds []Kind

// BuiltIn returns the kinds of Kubernetes itself.
func BuiltIn() Kinds { return Kinds{deployments, statefulSets, daemonSets, cronJobs} }

// ArgoRollout returns the kind Rollout of Argo Rollouts.
func ArgoRollout() Kind { return argoRollouts }

// With returns the table with k in place of the kind of the same name.
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
	for _, k := range t {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}
