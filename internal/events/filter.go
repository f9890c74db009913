package events

// SourceFilters returns the filter subjects of all changes that a cluster's workloads can depend on.
func SourceFilters(cluster string) []string {
	var filters []string
	for _, kind := range SourceKinds() {
		filters = append(filters, KindFilter(cluster, kind))
	}
	return filters
}

// KindFilter returns the filter subject of the changes of one kind in a cluster.
func KindFilter(cluster string, kind Kind) string {
	return changesRoot + cluster + "." + string(kind) + ".>"
}

// NamespaceFilter returns the filter subject of the changes of one kind in a namespace.
func NamespaceFilter(cluster string, kind Kind, namespace string) string {
	return changesRoot + cluster + "." + string(kind) + "." + encodeToken(namespace) + ".>"
}

// OutcomeFilter returns the filter subject of all outcomes of a cluster.
func OutcomeFilter(cluster string) string {
	return changesRoot + cluster + "." + string(KindRollout) + ".>"
}
