// Package reloader contains the settings for behaving like Stakater's Reloader, and the configurable keys of Reloader's annotations.
package reloader

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Annotations contains the keys of Reloader's annotations. Reloader itself has a flag for each of them.
type Annotations struct {
	// Auto, AutoSecret and AutoConfigMap, on a workload, make it roll on everything that its pod spec references, or on everything of one kind.
	Auto, AutoSecret, AutoConfigMap string
	// Secret and ConfigMap, on a workload, list the names of sources.
	Secret, ConfigMap string
	// Search, on a workload, makes it roll on referenced sources that have Match.
	Search, Match string
	// Ignore, on a source, means that its changes roll nothing.
	Ignore string
	// PausePeriod and PausedAt, on a Deployment, are the duration of a pause, which gathers changes, and its beginning.
	PausePeriod, PausedAt string
}

// Default returns Reloader's default keys.
func Default() Annotations {
	return Annotations{
		Auto:          "reloader.stakater.com/auto",
		AutoSecret:    "secret.reloader.stakater.com/auto",
		AutoConfigMap: "configmap.reloader.stakater.com/auto",
		Secret:        "secret.reloader.stakater.com/reload",
		ConfigMap:     "configmap.reloader.stakater.com/reload",
		Search:        "reloader.stakater.com/search",
		Match:         "reloader.stakater.com/match",
		Ignore:        "reloader.stakater.com/ignore",
		PausePeriod:   "deployment.reloader.stakater.com/pause-period",
		PausedAt:      "deployment.reloader.stakater.com/paused-at",
	}
}

// sharing are the names that may share a key. An annotation with such a key then has the effect of each of them, as in Reloader.
var sharing = []string{"auto-annotation", "secret-auto-annotation", "configmap-auto-annotation", "secret-annotation", "configmap-annotation"}

// Named returns the keys by the names of Reloader's flags.
func (r *Annotations) Named() map[string]*string {
	return map[string]*string{
		"auto-annotation":                  &r.Auto,
		"secret-auto-annotation":           &r.AutoSecret,
		"configmap-auto-annotation":        &r.AutoConfigMap,
		"secret-annotation":                &r.Secret,
		"configmap-annotation":             &r.ConfigMap,
		"auto-search-annotation":           &r.Search,
		"search-match-annotation":          &r.Match,
		"ignore-annotation":                &r.Ignore,
		"pause-deployment-annotation":      &r.PausePeriod,
		"pause-deployment-time-annotation": &r.PausedAt,
	}
}

// Parse returns the default keys, overridden by the flag's keys. Its error has a line for each problem.
func Parse(given map[string]string) (Annotations, error) {
	keys := Default()
	named := keys.Named()
	names := slices.Sorted(maps.Keys(named))
	var problems []error
	fail := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("--"+flag+": "+format, args...))
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		key, known := named[name]
		switch {
		case !known:
			fail("%.100q, want names of %s", name, strings.Join(names, ", "))
		case len(validation.IsQualifiedName(given[name])) > 0:
			fail("%s: %.100q, want the key of an annotation, such as example.org/reload", name, given[name])
		case strings.HasPrefix(given[name], "keyturn.dev/"):
			fail("%s: %q, want a key that is not Keyturn's own", name, given[name])
		default:
			*key = given[name]
		}
	}
	if len(problems) > 0 {
		return Annotations{}, errors.Join(problems...)
	}
	first := make(map[string]string, len(names))
	for _, name := range names {
		key := *named[name]
		switch other, taken := first[key]; {
		case !taken:
			first[key] = name
		case !slices.Contains(sharing, other) || !slices.Contains(sharing, name):
			fail("%s and %s: both are %q, want a key for each", other, name, key)
		}
	}
	return keys, errors.Join(problems...)
}
