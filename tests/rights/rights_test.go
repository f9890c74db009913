package rights

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestEachRightHasARow checks that deploy grants what needs has, and nothing else, and that the rights are shown in use.
func TestEachRightHasARow(t *testing.T) {
	t.Parallel()
	rows, granted := map[string][]string{}, map[string][]string{}
	for _, need := range needs {
		rows[need.manifest] = append(rows[need.manifest], need.rights()...)
	}
	for _, manifest := range manifestsWithRights(t) {
		for _, p := range PermissionsOf(GrantsOf(t, manifest)) {
			granted[manifest] = append(granted[manifest], p.String())
		}
	}
	for _, rights := range slices.Concat(slices.Collect(maps.Values(rows)), slices.Collect(maps.Values(granted))) {
		slices.Sort(rights)
	}
	if diff := cmp.Diff(rows, granted); diff != "" {
		t.Errorf("rights (-rows of needs +deploy); one without a row: what is it for?\n%s", diff)
	}
	shown := []string{"keys/rbac.yaml", "single/rbac.yaml"} // By tests of their own.
	for _, act := range Acts {
		shown = append(shown, act.Manifests...)
		// By a right that two manifests give, one of them could hide that nothing of its own needs it.
		by := map[string]string{}
		for _, manifest := range slices.Concat(act.Beside, act.Manifests) {
			for _, right := range granted[manifest] {
				if other, twice := by[right]; twice {
					t.Errorf("%s: %s and %s both give %s", act.Name, other, manifest, right)
				}
				by[right] = manifest
			}
		}
	}
	for manifest := range granted {
		if !slices.Contains(shown, manifest) {
			t.Errorf("%s: no act shows that its rights are used", manifest)
		}
	}
}

// manifestsWithRights returns the manifests of deploy that have roles, without those that needs leaves to other tests.
func manifestsWithRights(t *testing.T) []string {
	t.Helper()
	var manifests []string
	err := filepath.WalkDir(deploy, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		manifest, err := filepath.Rel(deploy, path)
		if err != nil {
			return err
		}
		isOtherTarget := filepath.Dir(manifest) == "targets" && manifest != filepath.Join("targets", "prometheus-operator")
		switch {
		case entry.IsDir() && (isOtherTarget || manifest == "chart" || manifest == "projections"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".yaml":
			return nil
		}
		content, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(content), "apiVersion: "+rbacv1.SchemeGroupVersion.String()) {
			manifests = append(manifests, filepath.ToSlash(manifest))
		}
		return err
	})
	testkit.Must(t, err)
	return manifests
}

// TestOnePodHasTheRightsOfBothProgramsAndThoseToItsKeys holds the rights of deploy/single to those of deploy/base.
func TestOnePodHasTheRightsOfBothProgramsAndThoseToItsKeys(t *testing.T) {
	t.Parallel()
	nobodys := func(manifest string) map[string]bool {
		all := map[string]bool{}
		for _, p := range PermissionsOf(GrantsOf(t, manifest)) {
			p.Account = ""
			all[p.String()] = true
		}
		return all
	}
	want := nobodys("base/rbac.yaml")
	for _, right := range []string{
		"create secrets", "get secrets keyturn-fingerprint-key", "get secrets keyturn-nats-reader", "get secrets keyturn-nats-storage",
	} {
		want[": "+right+" in keyturn-system"] = true
	}
	if diff := cmp.Diff(want, nobodys("single/rbac.yaml")); diff != "" {
		t.Errorf("rights (-both programs and the keys +one pod):\n%s", diff)
	}
}
