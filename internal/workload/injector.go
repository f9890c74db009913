package workload

import (
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// injectors are the prefixes of the annotations that the agent injectors of Vault and OpenBao read from a pod template.
var injectors = []string{"vault.hashicorp.com/", "openbao.openbao.org/", "openbao.org/"}

// injectorWebhook describes the annotations that the webhook of Bank-Vaults reads for one kind of store. Of several, the first existing one counts.
type injectorWebhook struct {
	scheme   string   // in variables, before a path
	prefixes []string // of its annotations
	fromPath []string // annotations with paths whose keys all become variables; <path>#<version> is pinned
}

// webhooks contains the names of the secrets webhook, and those of its predecessor, the vault-secrets-webhook, which it still accepts.
var webhooks = []injectorWebhook{
	{
		scheme:   "vault:",
		prefixes: []string{"secrets-webhook.security.bank-vaults.io/vault-", "vault.security.banzaicloud.io/vault-"},
		fromPath: []string{"secrets-webhook.security.bank-vaults.io/vault-from-path", "vault.security.banzaicloud.io/vault-env-from-path"},
	},
	{
		scheme:   "bao:",
		prefixes: []string{"secrets-webhook.security.bank-vaults.io/bao-"},
		fromPath: []string{"secrets-webhook.security.bank-vaults.io/bao-from-path"},
	},
}

// agentObjects and webhookObjects are suffixes of annotations that name an object to mount into injected containers. For agents, those with paths of
// certificates refer to files in the tls-secret.
var (
	agentObjects = map[string]events.Kind{
		"agent-configmap": events.KindConfigMap, "agent-extra-secret": events.KindSecret, "tls-secret": events.KindSecret,
	}
	webhookObjects = map[string]events.Kind{
		"agent-configmap": events.KindConfigMap, "ct-configmap": events.KindConfigMap, "tls-secret": events.KindSecret,
	}
)

// templateSecret finds the paths that a template of an agent reads: {{ with secret "secret/data/db" }}. Its groups are the path in each of the two
// quotes of Go templates, and in double quotes that are escaped once too often. Further arguments have their own quotes. Paths that a template
// composes, for example with printf, are unknown.
var templateSecret = regexp.MustCompile(`\b(?:secret|pkiCert)[\s(]+(?:("(?:[^"\\\n]|\\.)+")|` + "(`[^`]+`)" + `|\\("[^"\\]+)\\("))`)

// inlineSecret finds references within a variable, which may contain several: ${vault:secret/data/db#password}.
var inlineSecret = regexp.MustCompile(`\$\{((?:>>)?(?:vault|bao):[^}]+)\}`)

// injected adds the objects that an injector mounts into the pods of a template, and the paths that an injected agent or a command's wrapper reads
// from any store, as written: with or without the data/ of a KV v2 engine.
func (u uses) injected(template *corev1.PodTemplateSpec) {
	annotations := template.Annotations
	for _, prefix := range injectors {
		// The injectors parse the value like this, too: "True" and "1" mean "true".
		if inject, _ := strconv.ParseBool(annotations[prefix+"agent-inject"]); inject {
			u.objects(annotations, prefix, agentObjects)
			u.agent(annotations, prefix)
		}
	}
	for i := range webhooks {
		for _, prefix := range webhooks[i].prefixes {
			u.objects(annotations, prefix, webhookObjects)
		}
		u.webhook(&webhooks[i], annotations, &template.Spec)
	}
}

// objects adds the objects named by annotations with a prefix.
func (u uses) objects(annotations map[string]string, prefix string, kinds map[string]events.Kind) {
	for end, kind := range kinds {
		// Unlike names in a pod spec, these are not validated by the API server.
		if name := annotations[prefix+end]; validName(name) {
			u.add(Reference{Kind: kind, Name: name}, nil)
		}
	}
}

// agent adds the secrets that an injected agent reads according to its annotations.
func (u uses) agent(annotations map[string]string, prefix string) {
	namespace := annotations[prefix+"namespace"]
	for key, text := range annotations {
		switch {
		case strings.HasPrefix(key, prefix+"agent-inject-secret-"):
			u.storePath(namespace, text)
		case strings.HasPrefix(key, prefix+"agent-inject-template-"):
			for _, found := range templateSecret.FindAllStringSubmatch(text, -1) {
				if path, err := strconv.Unquote(strings.Join(found[1:], "")); err == nil {
					u.storePath(namespace, path)
				}
			}
		}
	}
}

// webhook adds the secrets that a command's wrapper reads for annotations and to replace variables.
func (u uses) webhook(reads *injectorWebhook, annotations map[string]string, spec *corev1.PodSpec) {
	namespace := firstOf(annotations, reads.prefixes, "namespace")
	for path := range strings.SplitSeq(firstOf(annotations, reads.fromPath, ""), ",") {
		if path, version, _ := strings.Cut(path, "#"); version == "" {
			u.storePath(namespace, path)
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

// firstOf returns the first existing annotation.
func firstOf(annotations map[string]string, prefixes []string, end string) string {
	for _, prefix := range prefixes {
		if text, ok := annotations[prefix+end]; ok {
			return text
		}
	}
	return ""
}

// variable adds the path of <scheme><path>#<key>, with or without >> before it, unless a version follows: <scheme><path>#<key>#<version>.
func (u uses) variable(scheme, namespace, text string) {
	path, ok := strings.CutPrefix(strings.TrimPrefix(text, ">>"), scheme)
	if !ok {
		return
	}
	path, rest, _ := strings.Cut(path, "#")
	if _, version, pinned := strings.Cut(rest, "#"); pinned && version != "" {
		return
	}
	u.storePath(namespace, path)
}

// storePath adds a path in the form of the store's API. A path with a version in its query is pinned and skipped.
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
