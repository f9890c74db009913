package kinds

import (
	"fmt"
	"slices"
	"strings"
)

// sourceKinds is the table of the kinds of sources.
var sourceKinds = []Kind{configMapKind{}, secretKind{}, externalSecretKind{}, certificateKind{}, secretProviderClassKind{}}

// Select returns the table entries of the kinds. It returns an error for a kind that is unknown or listed twice.
func Select(names []string) ([]Kind, error) {
	var selected []Kind
	for n, name := range names {
		i := slices.Index(Names(), name)
		if i < 0 {
			return nil, fmt.Errorf("--sources: %q, want any of %s", name, strings.Join(Names(), ", "))
		}
		if slices.Contains(names[:n], name) {
			return nil, fmt.Errorf("--sources: %q, want each kind once", strings.Join(names, ","))
		}
		selected = append(selected, sourceKinds[i])
	}
	return selected, nil
}

// Names lists the kinds of sources that can be watched.
func Names() []string {
	names := make([]string, 0, len(sourceKinds))
	for _, kind := range sourceKinds {
		names = append(names, string(kind.Listing().Kind))
	}
	return names
}
