package workload

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// A workload can read a secret store directly: through an injected agent, or through variables that a wrapper of its command
// resolves. Such references have the kind events.KindOpenBao. Their names are the paths as written: <mount>/<path>, or
// <mount>/data/<path> as in the API of KV v2, after the namespace if it is not the root. The store is not named, so any store
// matches.

// injectors are the prefixes of the annotations of the agent injectors of Vault and OpenBao.
var injectors = []string{"vault.hashicorp.com/", "openbao.org/"}

// Annotations of injectors, without the prefix.
const (
	agentInject    = "agent-inject"
	agentSecret    = "agent-inject-secret-"
	agentTemplate  = "agent-inject-template-"
	agentNamespace = "namespace"
)

// fromPath are the annotations by which the Bank-Vaults webhook adds all keys of paths to the environment.
var fromPath = []string{"vault.security.banzaicloud.io/vault-from-path", "secrets-webhook.security.bank-vaults.io/vault-from-path"}

// fromPathNamespace are the annotations with the namespace for those paths.
var fromPathNamespace = []string{"vault.security.banzaicloud.io/vault-namespace", "secrets-webhook.security.bank-vaults.io/vault-namespace"}

// templateSecret finds the paths that an agent template reads: {{ with secret "secret/data/db" }}. Further arguments are in their
// own quotes.
var templateSecret = regexp.MustCompile(`\b(?:secret|pkiCert)\s+"([^"\s]+)"`)

// inlineSecret finds the references within the text of a variable: ${vault:secret/data/db#password}.
var inlineSecret = regexp.MustCompile(`\$\{((?:>>)?(?:vault|bao):[^}]+)\}`)

// storePaths adds what a pod reads from a secret store directly.
func (u uses) storePaths(annotations map[string]string, spec *corev1.PodSpec) {
	for _, prefix := range injectors {
		if annotations[prefix+agentInject] != "true" {
			continue
		}
		namespace := annotations[prefix+agentNamespace]
		for key, text := range annotations {
			switch {
			case strings.HasPrefix(key, prefix+agentSecret):
				u.storePath(namespace, text)
			case strings.HasPrefix(key, prefix+agentTemplate):
				for _, found := range templateSecret.FindAllStringSubmatch(text, -1) {
					u.storePath(namespace, found[1])
				}
			}
		}
	}
	namespace := firstOf(annotations, fromPathNamespace)
	for path := range strings.SplitSeq(firstOf(annotations, fromPath), ",") {
		u.variable(namespace, "vault:"+strings.TrimSpace(path))
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for _, variable := range containers[i].Env {
				u.variable(namespace, variable.Value)
				for _, found := range inlineSecret.FindAllStringSubmatch(variable.Value, -1) {
					u.variable(namespace, found[1])
				}
			}
		}
	}
}

func firstOf(annotations map[string]string, keys []string) string {
	for _, key := range keys {
		if text, ok := annotations[key]; ok {
			return text
		}
	}
	return ""
}

// variable adds vault:<path>#<key> or bao:<path>#<key>, also after >>. It ignores a pinned version,
// vault:<path>#<key>#<version>, which never changes.
func (u uses) variable(namespace, text string) {
	text = strings.TrimPrefix(text, ">>")
	path, ok := strings.CutPrefix(text, "vault:")
	if !ok {
		if path, ok = strings.CutPrefix(text, "bao:"); !ok {
			return
		}
	}
	path, rest, _ := strings.Cut(path, "#")
	if _, version, pinned := strings.Cut(rest, "#"); pinned && version != "" {
		return
	}
	u.storePath(namespace, path)
}

// storePath adds a path as used in the store's API. It ignores a path whose query pins a version.
func (u uses) storePath(namespace, text string) {
	path, query, _ := strings.Cut(strings.TrimSpace(text), "?")
	if strings.Contains(query, "version=") {
		return
	}
	full := strings.Trim(path, "/")
	if namespace = strings.Trim(namespace, "/"); namespace != "" && full != "" {
		full = namespace + "/" + full
	}
	u.add(Reference{Kind: events.KindOpenBao, Name: full}, nil)
}

// Spellings returns the names by which workloads refer to a source: one, except for a secret in a store.
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

// RefersTo reports whether a reference, or a name in an annotation, means the source.
func RefersTo(kind events.Kind, name string, source events.Source) bool {
	return kind == source.Kind && isCalled(source, exactly(name))
}

// isCalled reports whether a name means the source. It runs for each reference of each dependent of each event, so it avoids the
// list of names for sources that have only one.
func isCalled(source events.Source, name matcher) bool {
	if source.Kind != events.KindOpenBao {
		return name.match(source.Name)
	}
	return slices.ContainsFunc(Spellings(source), name.match)
}

// SourceNamed returns the source by which the index finds a name in a workload of the namespace.
func SourceNamed(kind events.Kind, namespace, name string) events.Source {
	if kind == events.KindOpenBao {
		namespace = ""
	}
	return events.Source{Kind: kind, Namespace: namespace, Name: name}
}
