package workload

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
)

// Spellings returns the names by which workloads refer to a source: one, or two for a secret in a store.
func Spellings(source events.Source) []string {
	if source.Kind != events.KindOpenBao {
		return []string{source.Name}
	}
	path, err := source.StorePath()
	if err != nil {
		return nil
	}
	full := path.Full()
	mount := strings.TrimSuffix(full, path.Path)
	return []string{full, mount + "data/" + path.Path}
}

// RefersTo reports whether a reference, or a name in an annotation, refers to the source.
func RefersTo(kind events.Kind, name string, source events.Source) bool {
	return kind == source.Kind && isCalled(source, exactly(name))
}

// isCalled reports whether one of the names of a source matches. It runs for each reference of each dependent of each event, so it allocates nothing.
func isCalled(source events.Source, name matcher) bool {
	if source.Kind != events.KindOpenBao {
		return name.MatchString(source.Name)
	}
	return slices.ContainsFunc(Spellings(source), name.MatchString)
}

// isIn reports whether a source is a secret in the store.
func isIn(store string, source events.Source) bool {
	name, _, _ := strings.Cut(source.Name, "/")
	return source.Kind == events.KindOpenBao && name == store
}

// SourceNamed returns the source in the index that a workload in the given namespace refers to by name.
func SourceNamed(kind events.Kind, namespace, name string) events.Source {
	if kind == events.KindOpenBao {
		namespace = ""
	}
	return events.Source{Kind: kind, Namespace: namespace, Name: name}
}

// matcher matches the names of sources for an item of an annotation. It may be a *regexp.Regexp.
type matcher interface {
	MatchString(name string) bool
}

// exactly matches one name.
type exactly string

func (e exactly) MatchString(name string) bool { return name == string(e) }

// glob matches a name or a path, with * for any characters, including slashes, and ? for a single one. It is a pattern for path.Match, so that a
// plain name is its own pattern.
type glob string

// noSlash replaces slashes, which the wildcards of path.Match do not match. Names of secrets do not contain it.
const noSlash = "\x00"

func pathGlob(text string) glob {
	return glob(strings.NewReplacer("/", noSlash, `\`, `\\`, "[", `\[`).Replace(text))
}

func (g glob) MatchString(name string) bool {
	ok, _ := path.Match(string(g), strings.ReplaceAll(name, "/", noSlash))
	return ok
}

func validName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

func validGlob(text string) bool {
	return len(text) <= validation.DNS1123SubdomainMaxLength && strings.ContainsAny(text, "*?") &&
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789.-*?") == ""
}
