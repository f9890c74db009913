package chart

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestWhoMayNameWhichPathsIsWhereTheActuatorReadsIt(t *testing.T) {
	const grants = "grants: [{namespaces: [shop, team-*], store: prod, paths: [kv/shop]}]"
	want := workload.StoreAccess{Grants: []workload.StoreGrant{{Namespaces: []string{"shop", "team-*"}, Store: "prod", Paths: []string{"kv/shop"}}}}
	t.Run("with the chart", func(t *testing.T) {
		grantsAre(t, rendered(t, "storeAccess: {"+grants+"}"), want)
	})
	t.Run("with the component", func(t *testing.T) {
		const file = "configMapGenerator: [{name: keyturn-store-access, namespace: keyturn-system, files: [grants.yaml]}]\n"
		dir := overlay(t, file, "base", "store-access")
		testkit.WriteFile(t, filepath.Join(dir, "grants.yaml"), grants+"\n")
		grantsAre(t, objects(t, built(t, dir)), want)
	})
	if rendered(t, "{}")["ConfigMap "+systemNamespace+"/keyturn-store-access"] != nil {
		t.Error("without grants there is a ConfigMap")
	}
}

// grantsAre holds that the actuator reads the grants from the file that it mounts.
func grantsAre(t *testing.T, all map[string]object, want workload.StoreAccess) {
	t.Helper()
	file, _ := all["ConfigMap "+systemNamespace+"/keyturn"].at("data", "KEYTURN_STORE_ACCESS").(string)
	pod := fmt.Sprint(all[programs["actuator"]].at("spec", "template", "spec"))
	if mount := "mountPath:" + path.Dir(file) + " "; !strings.Contains(pod, mount) || !strings.Contains(pod, "name:keyturn-store-access") {
		t.Errorf("%s is not mounted", file)
	}
	content, _ := all["ConfigMap "+systemNamespace+"/keyturn-store-access"].at("data", path.Base(file)).(string)
	name := filepath.Join(t.TempDir(), "grants.yaml")
	testkit.WriteFile(t, name, content)
	got, err := workload.ReadStoreAccess(name)
	testkit.Must(t, err)
	testkit.WantEqual(t, "grants", want, got)
}
