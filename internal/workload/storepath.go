package workload

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// A workload can read a secret store itself: by an agent that its annotations have injected, or by variables that a
// wrapper of its command replaces. The references that this makes are of events.KindOpenBao. Their names are paths as
// they are written there: <mount>/<path>, or with the data/ that the API of a KV v2 engine has behind the mount, each with
// the namespace in front where it is not the root. Which store is meant is not written anywhere, so any is.

// injectors are the prefixes of the annotations that the agent injectors of Vault and OpenBao read from a pod template.
var injectors = []string{"vault.hashicorp.com/", "openbao.org/"}

// Annotations of injectors, behind the prefix.
const (
	agentInject    = "agent-inject"
	agentSecret    = "agent-inject-secret-"
	agentTemplate  = "agent-inject-template-"
	agentNamespace = "namespace"
)

// fromPath are the annotations by which the webhook of Bank-Vaults puts all keys of paths into the environment.
var fromPath = []string{"vault.security.banzaicloud.io/vault-from-path", "secrets-webhook.security.bank-vaults.io/vault-from-path"}

// fromPathNamespace are the annotations by which it is told the namespace.
var fromPathNamespace = []string{"vault.security.banzaicloud.io/vault-namespace", "secrets-webhook.security.bank-vaults.io/vault-namespace"}

// templateSecret finds the paths that a template of an agent reads: {{ with secret "secret/data/db" }}. What else is asked
// for besides the path is an argument of its own, behind another pair of quotes.
var templateSecret = regexp.MustCompile(`\b(?:secret|pkiCert)\s+"([^"\s]+)"`)

// inlineSecret finds the references within a variable that is more than one: ${vault:secret/data/db#password}.
var inlineSecret = regexp.MustCompile(`\$\{((?:>>)?(?:vault|bao):[^}]+)\}`)

// storePaths adds what a pod reads from a secret store itself.
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

// variable adds vault:<path>#<key> or bao:<path>#<key>, also with >> in front. One that names a version,
// vault:<path>#<key>#<version>, stays as it is whatever changes.
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

// storePath adds a path as it is given to the API of the store. What follows a question mark can be a version, which stays
// as it is.
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

// Spellings gives the names under which workloads refer to a source. It is one, but for a secret in a store.
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

// RefersTo tells whether a reference, or the name in an annotation, means the source.
func RefersTo(kind events.Kind, name string, source events.Source) bool {
	return kind == source.Kind && isCalled(source, exactly(name))
}

// isCalled tells whether one of the names of a source is meant. It is asked for each reference of each dependent of each
// event, so that what has one name is not asked for a list of them.
func isCalled(source events.Source, name matcher) bool {
	if source.Kind != events.KindOpenBao {
		return name.match(source.Name)
	}
	return slices.ContainsFunc(Spellings(source), name.match)
}

// SourceNamed gives the source that stands in the index for a name in a workload of the namespace.
func SourceNamed(kind events.Kind, namespace, name string) events.Source {
	if kind == events.KindOpenBao {
		namespace = ""
	}
	return events.Source{Kind: kind, Namespace: namespace, Name: name}
}
