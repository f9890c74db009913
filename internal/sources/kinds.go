package sources

import (
	"fmt"
	"slices"
	"strings"
)

// sourceKinds is the table of the kinds of sources.
var sourceKinds = []sourceKind{configMapSource, secretSource, externalSecretSource, certificateSource, secretProviderClassSource}

// selectSources returns the table entries of the kinds. It returns an error for a kind that is unknown or listed twice.
func selectSources(kinds []string) ([]sourceKind, error) {
	var selected []sourceKind
	for n, kind := range kinds {
		i := slices.IndexFunc(sourceKinds, func(s sourceKind) bool { return string(s.kind) == kind })
		if i < 0 {
			return nil, fmt.Errorf("--sources: %q, want any of %s", kind, strings.Join(kindNames(), ", "))
		}
		if slices.Contains(kinds[:n], kind) {
			return nil, fmt.Errorf("--sources: %q, want each kind once", strings.Join(kinds, ","))
		}
		selected = append(selected, sourceKinds[i])
	}
	return selected, nil
}

// withParts returns the kinds and the kinds of their parts.
func withParts(kinds []sourceKind) []sourceKind {
	all := slices.Clone(kinds)
	for _, kind := range kinds {
		if kind.part != nil {
			all = append(all, *kind.part)
		}
	}
	return all
}

// kindNames lists the kinds of sources that can be watched.
func kindNames() []string {
	names := make([]string, 0, len(sourceKinds))
	for _, s := range sourceKinds {
		names = append(names, string(s.kind))
	}
	return names
}

// defaultKinds lists the kinds that every cluster has.
func defaultKinds() []string {
	var names []string
	for _, s := range sourceKinds {
		if !s.isCustom() {
			names = append(names, string(s.kind))
		}
	}
	return names
}
