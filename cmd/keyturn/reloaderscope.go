package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
)

func (t *translation) setScope() {
	f, sources := t.flags, &t.Watcher.Sources
	t.checkNames("--namespaces", f.Namespaces)
	namespaces := f.Namespaces
	if len(namespaces) == 0 && t.env.Namespace != "" {
		namespaces = []string{t.env.Namespace}
		t.checkNames("KUBERNETES_NAMESPACE", namespaces)
	}
	selector := t.selector("--namespace-selector", f.NamespaceSelector)
	sources.Selector = t.selector("--resource-label-selector", f.ResourceLabelSelector)
	if len(namespaces) == 0 {
		sources.NamespaceSelector = selector
		t.ignoreNamespaces(f.NamespacesToIgnore)
	} else {
		namespaces = unique(namespaces)
		sources.Namespaces, t.Actuator.Actuate.Namespaces = namespaces, namespaces
		if len(f.NamespacesToIgnore) > 0 {
			t.note("--namespaces-to-ignore", "none, because the namespaces are named")
		}
		if selector != "" {
			t.note("--namespace-selector", "none, because the namespaces are named")
		}
	}
	t.setKinds()
}

// ignoreNamespaces sets the namespaces to ignore. As in Reloader, an invalid name has no effect.
func (t *translation) ignoreNamespaces(namespaces []string) {
	var ignored []string
	for _, namespace := range unique(namespaces) {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			t.note("--namespaces-to-ignore", fmt.Sprintf("none for %q, which is not the name of a namespace", namespace))
			continue
		}
		ignored = append(ignored, namespace)
	}
	t.Watcher.Sources.IgnoreNamespaces, t.Actuator.Actuate.IgnoreNamespaces = ignored, ignored
}

// unique returns the names sorted and without duplicates.
func unique(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

func (t *translation) checkNames(setting string, namespaces []string) {
	for _, namespace := range namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			t.refuse(setting, namespace, "the name of a namespace")
		}
	}
}

// setKinds sets the kinds of sources, without the ignored one, and with the Secrets Store CSI driver's classes if its integration is on.
func (t *translation) setKinds() {
	sources, ignored := &t.Watcher.Sources, t.flags.ResourcesToIgnore
	if t.flags.EnableCSIIntegration {
		sources.Kinds = append(slices.Clone(sources.Kinds), string(events.KindSecretProviderClass))
	}
	kinds := map[string]events.Kind{"configmaps": events.KindConfigMap, "secrets": events.KindSecret}
	if len(ignored) > 1 {
		t.refuse("--resources-to-ignore", strings.Join(ignored, ","), "configmaps or secrets, not both")
		return
	}
	for _, text := range ignored {
		kind, known := kinds[strings.ToLower(text)]
		if !known {
			t.refuse("--resources-to-ignore", text, "configmaps or secrets")
		}
		sources.Kinds = slices.DeleteFunc(sources.Kinds, func(name string) bool { return name == string(kind) })
	}
}

// selector returns the label selector for the items of a flag, with a note for each item with several colons, of which Reloader reads only a part.
func (t *translation) selector(flag string, items []string) string {
	for _, item := range items {
		if strings.Count(item, ":") > 1 {
			t.note(flag, fmt.Sprintf("every value of %q counts, of which Reloader reads only the first", item))
		}
	}
	text, err := parseSelector(items)
	t.check(flag, err)
	return text
}

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

// requirement returns an item in the form of a label selector. An item without a key is returned unchanged, and so is invalid, because without its
// value it would be empty and match everything.
func requirement(item string) string {
	if key, value, found := strings.Cut(item, ":"); found {
		item = key + "=" + value
	}
	if key, value, found := strings.Cut(item, "="); found && value == "*" && key != "" {
		return key
	}
	return item
}
