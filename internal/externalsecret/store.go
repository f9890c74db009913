package externalsecret

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Store is what matters of a SecretStore or a ClusterSecretStore, which is one without a namespace.
type Store struct {
	// ObjectMeta has the namespace, the name, the UID and the resourceVersion.
	metav1.ObjectMeta
	// Problems say what of its spec cannot be read. The rest counts.
	Problems []error

	// provider is nil where the store is neither a Vault nor an OpenBao.
	provider *provider
	// conditions choose the namespaces of a ClusterSecretStore. Without any it is for all.
	conditions []condition
}

// condition chooses a namespace where any of its parts does.
type condition struct {
	names    []string
	selector labels.Selector // nil: none
	regexps  []*regexp.Regexp
}

// ReadStore reads a SecretStore or a ClusterSecretStore. From one that is not as the API has it nothing is read, and it
// has that among its Problems.
func ReadStore(obj *unstructured.Unstructured) *Store {
	s := &Store{ObjectMeta: metaOf(obj)}
	var typed storeSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &typed); err != nil {
		s.Problems = append(s.Problems, err)
		return s
	}
	s.provider = newProvider(&typed)
	if s.Namespace != "" {
		return s // conditions are for ClusterSecretStores
	}
	for i := range typed.Spec.Conditions {
		spec := &typed.Spec.Conditions[i]
		s.conditions = append(s.conditions, condition{
			names: spec.Namespaces, selector: s.selector(spec.NamespaceSelector), regexps: s.regexps(spec.NamespaceRegexes),
		})
	}
	return s
}

func (s *Store) selector(spec *metav1.LabelSelector) labels.Selector {
	if spec == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(spec)
	if err != nil {
		s.Problems = append(s.Problems, fmt.Errorf("conditions: namespaceSelector: %w", err))
		return nil
	}
	return selector
}

func (s *Store) regexps(texts []string) []*regexp.Regexp {
	var list []*regexp.Regexp
	for _, text := range texts {
		compiled, err := regexp.Compile(text)
		if err != nil {
			s.Problems = append(s.Problems, fmt.Errorf("conditions: namespaceRegexes: %w", err))
			continue
		}
		list = append(list, compiled)
	}
	return list
}

// Serves tells whether the ExternalSecrets of a namespace may use the store. The labels of the namespace are not known
// here, but for the one that is its name: whatever a selector asks of others is taken to be so.
func (s *Store) Serves(namespace string) bool {
	if s.Namespace != "" {
		return s.Namespace == namespace
	}
	return len(s.conditions) == 0 || slices.ContainsFunc(s.conditions, func(c condition) bool { return c.chooses(namespace) })
}

func (c condition) chooses(namespace string) bool {
	return slices.Contains(c.names, namespace) ||
		c.selector != nil && maySelect(c.selector, namespace) ||
		slices.ContainsFunc(c.regexps, func(r *regexp.Regexp) bool { return r.MatchString(namespace) })
}

func maySelect(selector labels.Selector, namespace string) bool {
	requirements, selectable := selector.Requirements()
	known := labels.Set{corev1.LabelMetadataName: namespace}
	return selectable && !slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		return r.Key() == corev1.LabelMetadataName && !r.Matches(known)
	})
}
