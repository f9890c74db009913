package reloader

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

const flag = "reloader-annotations"

// sharing are the names that may have one key. Each of them is read by itself, so one annotation then does what each of them does, as in Reloader.
var sharing = []string{"auto-annotation", "secret-auto-annotation", "configmap-auto-annotation", "secret-annotation", "configmap-annotation"}

// named returns the keys by the names of Reloader's flags that set them.
func (r *Annotations) named() map[string]*string {
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

// AddFlag adds the flag that sets keys, which are identified by the names of Reloader's flags.
func AddFlag(flags *pflag.FlagSet, keys *map[string]string) {
	var all Annotations
	flags.StringToStringVar(keys, flag, *keys, "other keys for annotations of Reloader, as comma-separated `name=key`; the names are those of "+
		"Reloader's flags: "+strings.Join(slices.Sorted(maps.Keys(all.named())), ", "))
}

// Parse returns the default keys, overridden by those of the flag. Its error has a line for each problem.
func Parse(given map[string]string) (Annotations, error) {
	keys := Default()
	named := keys.named()
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
		other, taken := first[key]
		if taken && slices.Contains(sharing, other) && slices.Contains(sharing, name) {
			continue
		}
		if taken {
			fail("%s and %s: both are %q, want a key for each", other, name, key)
			continue
		}
		first[key] = name
	}
	return keys, errors.Join(problems...)
}
