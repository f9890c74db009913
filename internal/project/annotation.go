package project

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/kube"
)

// annotation requests values for fields of a resource: <path>=secret/<name>/<key>, several of them separated by semicolons.
const annotation = "keyturn.dev/project"

const maxWishes = 16

type wish struct {
	path    kube.FieldPath
	pointer string
	names   []string
	// secret is in the namespace of the resource.
	secret, key string
}

// parseWishes reads the annotation. The error identifies the invalid field by its number, and quotes nothing.
func parseWishes(text string) ([]wish, error) {
	items := strings.Split(text, ";")
	if strings.TrimSpace(items[len(items)-1]) == "" {
		items = items[:len(items)-1]
	}
	if len(items) == 0 || len(items) > maxWishes {
		return nil, fmt.Errorf("has %d fields, want 1 to %d", len(items), maxWishes)
	}
	wishes := make([]wish, 0, len(items))
	for i, item := range items {
		w, problem := parseWish(strings.TrimSpace(item))
		if problem != "" {
			return nil, fmt.Errorf("field %d %s", i+1, problem)
		}
		for _, earlier := range wishes {
			if overlap(earlier.pointer, w.pointer) {
				return nil, fmt.Errorf("field %d is that of another one, or contains it, or is in it", i+1)
			}
		}
		wishes = append(wishes, w)
	}
	return wishes, nil
}

func parseWish(item string) (w wish, problem string) {
	const form = "is not <path>=secret/<name>/<key>"
	// A name in the path may contain "=", but the name and the key of a Secret cannot.
	sign := strings.LastIndex(item, "=")
	if sign < 0 {
		return wish{}, form
	}
	parts := strings.Split(strings.TrimSpace(item[sign+1:]), "/")
	if len(parts) != 3 || parts[0] != "secret" || len(validation.IsDNS1123Subdomain(parts[1])) > 0 || len(validation.IsConfigMapKey(parts[2])) > 0 {
		return wish{}, form
	}
	w, problem = fieldOf(strings.TrimSpace(item[:sign]))
	w.secret, w.key = parts[1], parts[2]
	return w, problem
}

// overlap reports whether two JSON pointers are the same, or one of them is inside the other.
func overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// refusal returns why a resource of the kind in a namespace must not have the fields that it wants, or "" if it may.
func (k *kind) refusal(namespace string, wishes []wish) string {
	for _, w := range wishes {
		keys, given := k.keys[source{namespace: namespace, name: w.secret}]
		switch {
		case !k.pointers[w.pointer]:
			return fmt.Sprintf("The field %s of a %s may not be written.", w.path, k.config.Kind)
		case !given:
			return fmt.Sprintf("secret/%s is not given to a %s.", w.secret, k.config.Kind)
		case !slices.Contains(keys, w.key):
			return fmt.Sprintf("The key %s of secret/%s is not given to a %s.", w.key, w.secret, k.config.Kind)
		}
	}
	return ""
}
