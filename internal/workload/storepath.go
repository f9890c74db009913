package workload

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// storePaths collects the paths that a pod reads from a secret store without a Secret: through an agent that annotations inject, or through
// variables that a wrapper of its command replaces. The paths are as written there: <mount>/<path>, or with the data/ of the API of a KV v2
// engine after the mount, in both cases preceded by the store's namespace if that is not the root. They do not say which store is meant, so
// it may be any.
type storePaths []string

// injectors are the prefixes of the annotations that the agent injectors of Vault and OpenBao read from a pod template.
var injectors = []string{"vault.hashicorp.com/", "openbao.org/"}

// Annotations of injectors, after the prefix.
const (
	agentInject    = "agent-inject"
	agentSecret    = "agent-inject-secret-"
	agentTemplate  = "agent-inject-template-"
	agentNamespace = "namespace"
)

// fromPath are the annotations with which the webhook of Bank-Vaults puts all keys of paths into the environment.
var fromPath = []string{"vault.security.banzaicloud.io/vault-from-path", "secrets-webhook.security.bank-vaults.io/vault-from-path"}

// fromPathNamespace are the annotations with the namespace of those paths.
var fromPathNamespace = []string{"vault.security.banzaicloud.io/vault-namespace", "secrets-webhook.security.bank-vaults.io/vault-namespace"}

// templateSecret finds the paths that a template of an agent reads: {{ with secret "secret/data/db" }}. Further arguments have their own quotes.
var templateSecret = regexp.MustCompile(`\b(?:secret|pkiCert)\s+"([^"\s]+)"`)

// inlineSecret finds references within a variable, which may have several: ${vault:secret/data/db#password}.
var inlineSecret = regexp.MustCompile(`\$\{((?:>>)?(?:vault|bao):[^}]+)\}`)

// storePathsOf returns the paths that the pods of a template read.
func storePathsOf(annotations map[string]string, spec *corev1.PodSpec) storePaths {
	var u storePaths
	for _, prefix := range injectors {
		if annotations[prefix+agentInject] == "true" {
			u.agent(prefix, annotations)
		}
	}
	namespace := firstOf(annotations, fromPathNamespace)
	for path := range strings.SplitSeq(firstOf(annotations, fromPath), ",") {
		u.variable(namespace, "vault:"+strings.TrimSpace(path))
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			u.environment(namespace, containers[i].Env)
		}
	}
	return u
}

// agent adds what an injected agent reads according to its annotations.
func (u *storePaths) agent(prefix string, annotations map[string]string) {
	namespace := annotations[prefix+agentNamespace]
	for key, text := range annotations {
		switch {
		case strings.HasPrefix(key, prefix+agentSecret):
			u.path(namespace, text)
		case strings.HasPrefix(key, prefix+agentTemplate):
			for _, found := range templateSecret.FindAllStringSubmatch(text, -1) {
				u.path(namespace, found[1])
			}
		}
	}
}

// environment adds the references in variables that the wrapper of a command replaces.
func (u *storePaths) environment(namespace string, env []corev1.EnvVar) {
	for _, variable := range env {
		u.variable(namespace, variable.Value)
		for _, found := range inlineSecret.FindAllStringSubmatch(variable.Value, -1) {
			u.variable(namespace, found[1])
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

// variable adds the path of vault:<path>#<key> or bao:<path>#<key>, with or without >> before it. A reference with a version,
// vault:<path>#<key>#<version>, is pinned and skipped: no change affects it.
func (u *storePaths) variable(namespace, text string) {
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
	u.path(namespace, path)
}

// path adds a path in the form of the store's API. A path with a version in its query is pinned and skipped.
func (u *storePaths) path(namespace, text string) {
	path, query, _ := strings.Cut(strings.TrimSpace(text), "?")
	if strings.Contains(query, "version=") {
		return
	}
	full := strings.Trim(path, "/")
	if namespace = strings.Trim(namespace, "/"); namespace != "" && full != "" {
		full = namespace + "/" + full
	}
	*u = append(*u, full)
}
