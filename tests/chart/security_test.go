package chart

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestThePageOfPermissionsListsEveryRight holds the table of rights in docs/reference/permissions.md to the roles of the manifests, both ways.
func TestThePageOfPermissionsListsEveryRight(t *testing.T) {
	page := testkit.ReadFile(t, "../../docs/reference/permissions.md")
	documented := map[string]bool{}
	for line := range strings.Lines(page) {
		cells := strings.Split(line, " | ")
		account, ok := strings.CutPrefix(cells[0], "| `keyturn-")
		if !ok || len(cells) != 5 {
			continue
		}
		for resource := range strings.SplitSeq(cells[2], ", ") {
			for verb := range strings.SplitSeq(cells[3], ", ") {
				documented[strings.Join([]string{strings.TrimSuffix(account, "`"), cells[1], verb, resource}, " ")] = true
			}
		}
	}
	granted := map[string]bool{}
	base := kustomized(t, "base")
	addRights(granted, "base", base)
	for _, component := range []string{"secret-stores", "argo-rollouts", "jobs", "reload-in-place", "secret-provider-classes", "namespace-selector"} {
		with := kustomized(t, "base", component)
		maps.DeleteFunc(with, func(name string, _ object) bool { return base[name] != nil })
		addRights(granted, "components/"+component, with)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(granted)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("rights (-manifests +page):\n%s", diff)
	}
}

// addRights adds the permissions of the roles among the objects. A role's name begins with that of its account.
func addRights(all map[string]bool, where string, objects map[string]object) {
	for _, o := range objects {
		rules, ok := o["rules"].([]string)
		if !ok {
			continue
		}
		account := strings.Split(fmt.Sprint(o.at("metadata", "name")), "-")[1]
		for _, rule := range rules {
			all[account+" "+where+" "+rule] = true
		}
	}
}
