package externalsecret

import (
	"cmp"
	"errors"
	"regexp"
	"slices"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// Store contains the needed parts of a SecretStore or a ClusterSecretStore, which has no namespace.
type Store struct {
	metav1.ObjectMeta             // with the namespace, the name, the UID and the resourceVersion
	provider          *provider   // nil if the store is neither Vault nor OpenBao
	conditions        []condition // for the namespaces that may use a ClusterSecretStore; none means all
}

// condition selects a namespace if any of its parts matches.
type condition struct {
	names    []string
	selector labels.Selector  // nil matches none
	regexps  []*regexp.Regexp // nil stands for an expression that is too large to keep, and matches all
}

// storeSpec decodes only the needed parts of a SecretStore or ClusterSecretStore: a newer field of one of the many providers must not make decoding
// fail, and the provider openBao is newer than the types.
type storeSpec struct {
	Spec struct {
		Provider struct {
			Vault   *providerSpec `json:"vault"`
			OpenBao *providerSpec `json:"openBao"`
		} `json:"provider"`
		Conditions []esv1.ClusterSecretStoreCondition `json:"conditions"`
	} `json:"spec"`
}

// providerSpec contains the common fields of both providers.
type providerSpec struct {
	Server    string                   `json:"server"`
	Path      *string                  `json:"path"`
	Version   esv1.VaultKVStoreVersion `json:"version"`
	Namespace string                   `json:"namespace"`
}

// ReadStore reads a SecretStore or a ClusterSecretStore. If it is malformed, it has no provider, and a malformed part of a condition selects nothing.
func ReadStore(obj *unstructured.Unstructured) *Store {
	s := &Store{ObjectMeta: metaOf(obj)}
	var typed storeSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &typed); err != nil {
		return s
	}
	s.provider = newProvider(&typed)
	if s.Namespace != "" {
		return s // only a ClusterSecretStore has conditions
	}
	var namespaces expressions
	for i := range typed.Spec.Conditions {
		spec := &typed.Spec.Conditions[i]
		c := condition{names: spec.Namespaces}
		if spec.NamespaceSelector != nil {
			c.selector, _ = metav1.LabelSelectorAsSelector(spec.NamespaceSelector)
		}
		for _, text := range spec.NamespaceRegexes {
			if compiled, err := namespaces.compile(text); err == nil || errors.Is(err, kube.ErrExpressionTooLarge) {
				c.regexps = append(c.regexps, compiled)
			}
		}
		s.conditions = append(s.conditions, c)
	}
	return s
}

// serves reports whether ExternalSecrets of a namespace may use the store. Of the namespace's labels, only that with its name is known here, so
// requirements on other labels count as met.
func (s *Store) serves(namespace string) bool {
	if s.Namespace != "" {
		return s.Namespace == namespace
	}
	return len(s.conditions) == 0 || slices.ContainsFunc(s.conditions, func(c condition) bool { return c.selects(namespace) })
}

func (c condition) selects(namespace string) bool {
	return slices.Contains(c.names, namespace) ||
		c.selector != nil && maySelect(c.selector, namespace) ||
		slices.ContainsFunc(c.regexps, func(r *regexp.Regexp) bool { return r == nil || r.MatchString(namespace) })
}

func maySelect(selector labels.Selector, namespace string) bool {
	requirements, selectable := selector.Requirements()
	known := labels.Set{corev1.LabelMetadataName: namespace}
	return selectable && !slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return r.Key() == corev1.LabelMetadataName && !r.Matches(known)
	})
}

// expressions compiles the regular expressions of one object, whose author must not exhaust the time and memory of the programs.
type expressions struct{ steps int }

// compile compiles an expression. If it is too large, the error is kube.ErrExpressionTooLarge: anything may match it.
func (e *expressions) compile(text string) (*regexp.Regexp, error) {
	compiled, steps, err := kube.CompileExpression(text, kube.MaxExpressionSteps-e.steps)
	e.steps += steps
	return compiled, err
}

// newProvider returns nil for a store of another provider.
func newProvider(typed *storeSpec) *provider {
	vault := typed.Spec.Provider.Vault
	spec := cmp.Or(vault, typed.Spec.Provider.OpenBao)
	if spec == nil {
		return nil
	}
	p := &provider{
		server: events.StoreAddress(spec.Server), namespace: spec.Namespace, mount: spec.Path,
		v1: spec.Version == esv1.VaultKVStoreV1, openBao: vault == nil,
	}
	if p.openBao && p.mount == nil {
		p.mount = new(defaultMount)
	}
	return p
}
