package workload

import (
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// storePaths collects the paths that a pod reads from a store through an injected agent or a wrapper of its command. They are as written there, with
// or without the data/ of a KV v2 engine, and with the store's namespace in front. They may be in any store.
type storePaths []string

// injectors are the prefixes of the annotations that the agent injectors of Vault and OpenBao read from a pod template.
var injectors = []string{"vault.hashicorp.com/", "openbao.org/"}

// webhookReads is what the webhook of Bank-Vaults reads for one kind of store. Of several annotations the first that is there counts.
type webhookReads struct {
	scheme    string   // in variables, before a path
	fromPath  []string // annotations with paths of which all keys become variables; <path>#<version> is pinned
	namespace []string // annotations with the store's namespace of all paths of this scheme
}

// webhooks have the names of the secrets webhook, and then those of its predecessor, the vault-secrets-webhook, which it accepts as well.
var webhooks = []webhookReads{
	{
		scheme:    "vault:",
		fromPath:  []string{"secrets-webhook.security.bank-vaults.io/vault-from-path", "vault.security.banzaicloud.io/vault-env-from-path"},
		namespace: []string{"secrets-webhook.security.bank-vaults.io/vault-namespace", "vault.security.banzaicloud.io/vault-namespace"},
	},
	{
		scheme:    "bao:",
		fromPath:  []string{"secrets-webhook.security.bank-vaults.io/bao-from-path"},
		namespace: []string{"secrets-webhook.security.bank-vaults.io/bao-namespace"},
	},
}

// templateSecret finds the paths that a template of an agent reads: {{ with secret "secret/data/db" }}. Further arguments have their own quotes.
var templateSecret = regexp.MustCompile(`\b(?:secret|pkiCert)\s+"([^"\s]+)"`)

// inlineSecret finds references within a variable, which may have several: ${vault:secret/data/db#password}.
var inlineSecret = regexp.MustCompile(`\$\{((?:>>)?(?:vault|bao):[^}]+)\}`)

// storePathsOf returns the paths that the pods of a template read.
func storePathsOf(annotations map[string]string, spec *corev1.PodSpec) storePaths {
	var u storePaths
	for _, prefix := range injectors {
		// The injectors parse the annotation like this, too: "True" and "1" are as good as "true".
		if inject, err := strconv.ParseBool(annotations[prefix+"agent-inject"]); err == nil && inject {
			u.agent(prefix, annotations)
		}
	}
	for i := range webhooks {
		u.webhook(&webhooks[i], annotations, spec)
	}
	return u
}

// agent adds what an injected agent reads according to its annotations.
func (u *storePaths) agent(prefix string, annotations map[string]string) {
	namespace := annotations[prefix+"namespace"]
	for key, text := range annotations {
		switch {
		case strings.HasPrefix(key, prefix+"agent-inject-secret-"):
			u.path(namespace, text)
		case strings.HasPrefix(key, prefix+"agent-inject-template-"):
			for _, found := range templateSecret.FindAllStringSubmatch(text, -1) {
				u.path(namespace, found[1])
			}
		}
	}
}

// webhook adds what the wrapper of a command reads for annotations, and to replace variables.
func (u *storePaths) webhook(reads *webhookReads, annotations map[string]string, spec *corev1.PodSpec) {
	namespace := firstOf(annotations, reads.namespace)
	for path := range strings.SplitSeq(firstOf(annotations, reads.fromPath), ",") {
		if path, version, _ := strings.Cut(path, "#"); version == "" {
			u.path(namespace, path)
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for _, variable := range containers[i].Env {
				u.variable(reads.scheme, namespace, variable.Value)
				for _, found := range inlineSecret.FindAllStringSubmatch(variable.Value, -1) {
					u.variable(reads.scheme, namespace, found[1])
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

// variable adds the path of <scheme><path>#<key>, with or without >> before it, unless a version follows: <scheme><path>#<key>#<version>.
func (u *storePaths) variable(scheme, namespace, text string) {
	path, ok := strings.CutPrefix(strings.TrimPrefix(text, ">>"), scheme)
	if !ok {
		return
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
