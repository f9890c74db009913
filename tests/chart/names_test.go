package chart

import (
	"fmt"
	"strings"
	"testing"
)

// fixedNames are the beginnings of names that programs, certificates and people know: no value changes them.
var fixedNames = []string{"keyturn-nats", "keyturn-system-", "keyturn-reloader"}

func TestAllObjectsButThoseThatAreLookedUpBeginWithTheNameOfTheRelease(t *testing.T) {
	for _, values := range everything {
		all := rendered(t, "{fullnameOverride: rolls, "+strings.TrimPrefix(values, "{"))
		for name, one := range all {
			_, named, _ := strings.Cut(name, "/")
			isFixed := named == "reloader-meta-info"
			for _, fixed := range fixedNames {
				isFixed = isFixed || strings.HasPrefix(named, fixed)
			}
			if !isFixed && named != "rolls" && !strings.HasPrefix(named, "rolls-") {
				t.Errorf("with %s: there is %s", values, name)
			}
			account := one.at("spec", "template", "spec", "serviceAccountName")
			if account != nil && all[fmt.Sprintf("ServiceAccount %v/%v", one.at("metadata", "namespace"), account)] == nil {
				t.Errorf("with %s: the account %v of %s is not there", values, account, name)
			}
			for _, settings := range configMapsOf(one) {
				if all["ConfigMap "+systemNamespace+"/"+settings] == nil {
					t.Errorf("with %s: the ConfigMap %s of %s is not there", values, settings, name)
				}
			}
		}
		namesWhatIsThere(t, all)
	}
}

// configMapsOf are the ConfigMaps that the pods of an object have their variables and files from.
func configMapsOf(one object) []string {
	var names []string
	volumes, _ := one.at("spec", "template", "spec", "volumes").([]any)
	for _, volume := range volumes {
		if name, ok := object(volume.(map[string]any)).at("configMap", "name").(string); ok {
			names = append(names, name)
		}
	}
	containers, _ := one.at("spec", "template", "spec", "containers").([]any)
	for _, container := range containers {
		from, _ := container.(map[string]any)["envFrom"].([]any)
		for _, source := range from {
			if name, ok := object(source.(map[string]any)).at("configMapRef", "name").(string); ok {
				names = append(names, name)
			}
		}
	}
	return names
}
