package reloader

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// parseSelector returns the label selector for the items of a flag. Like in Reloader, an item may be a requirement of a label selector,
// key:value, or key:* or key=* for any value. An item may also have several of these, because Reloader's chart quotes a whole selector.
func parseSelector(items []string) (string, error) {
	requirements := strings.Split(strings.Join(items, ","), ",")
	for i, item := range requirements {
		requirements[i] = requirement(item)
	}
	text := strings.Join(requirements, ",")
	if _, err := labels.Parse(text); err != nil {
		return "", fmt.Errorf("%q, want a label selector: %w", strings.Join(items, ","), err)
	}
	return text, nil
}

// requirement returns an item in the form of a label selector. An item without a key is returned unchanged, and so is invalid: without its
// value, it would be empty and match everything.
func requirement(item string) string {
	if key, value, found := strings.Cut(item, ":"); found {
		item = key + "=" + value
	}
	if key, value, found := strings.Cut(item, "="); found && value == "*" && key != "" {
		return key
	}
	return item
}
