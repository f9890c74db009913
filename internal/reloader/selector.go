package reloader

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// parseSelector returns the label selector of the items of a flag. Besides the requirements of a label selector they may be key:value, and
// key:* or key=* for any value, as Reloader reads them. An item may have several of them: Reloader's chart quotes all of a selector.
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

// requirement returns the form that a label selector has for an item. One without a key stays what it is, which is no requirement: without
// its value it would be none, and match everything.
func requirement(item string) string {
	if key, value, found := strings.Cut(item, ":"); found {
		item = key + "=" + value
	}
	if key, value, found := strings.Cut(item, "="); found && value == "*" && key != "" {
		return key
	}
	return item
}
