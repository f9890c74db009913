package install

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/tests/testbed"
)

// TestEachRightHasARow checks that each permission granted anywhere in deploy is in a table of needed permissions, for each of
// which a test shows that it is.
func TestEachRightHasARow(t *testing.T) {
	rows := slices.Concat(needs(), selectorNeeds(), storeNeeds(), argoNeeds(), jobsNeeds(), classNeeds(), keysNeeds(), inPlaceNeeds())
	err := filepath.WalkDir("../../deploy", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		// tests/chart compares the chart with the others, and targets with what they list. A test of the projector takes each of its rules away.
		case entry.IsDir() && slices.Contains([]string{"chart", "targets", "projections"}, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".yaml":
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(content), "apiVersion: "+rbacv1.SchemeGroupVersion.String()) {
			return err
		}
		for account, rules := range readRules(t, path, content) {
			for name := range rightsOf(rules) {
				if !slices.ContainsFunc(rows, func(n need) bool { return n.account == account && n.right == name }) {
					t.Errorf("%s: %s may %s: what is it for? It has no row among those that are needed", path, account, name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rulesOf returns the rules that manifests of deploy grant, by account.
func rulesOf(t *testing.T, paths ...string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	all := map[string][]rbacv1.PolicyRule{}
	for _, path := range paths {
		path = filepath.Join("../../deploy", path)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for account, rules := range readRules(t, path, content) {
			all[account] = append(all[account], rules...)
		}
	}
	return all
}

// readRules returns the rules that a manifest grants, by account, following its own bindings.
func readRules(t *testing.T, path string, content []byte) map[string][]rbacv1.PolicyRule {
	t.Helper()
	objects, err := testbed.ReadManifests(bytes.NewReader(content))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	roles, given := map[rbacv1.RoleRef][]rbacv1.PolicyRule{}, map[string][]rbacv1.PolicyRule{}
	for _, object := range objects {
		if strings.HasSuffix(object.GetKind(), "Role") {
			var role rbacv1.ClusterRole
			fromObject(t, object, &role)
			roles[rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name}] = role.Rules
		}
	}
	bound := 0
	for _, object := range objects {
		if !strings.HasSuffix(object.GetKind(), "RoleBinding") {
			continue
		}
		var binding rbacv1.ClusterRoleBinding
		fromObject(t, object, &binding)
		for _, subject := range binding.Subjects {
			given[subject.Name] = append(given[subject.Name], roles[binding.RoleRef]...)
		}
		bound++
	}
	if bound != len(roles) || len(given) == 0 {
		t.Fatalf("%s: got %d roles and %d bindings, want one for each", path, len(roles), bound)
	}
	return given
}

func fromObject(t *testing.T, object *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		t.Fatal(err)
	}
}

// without returns the rules without one permission, as one rule for each verb and resource.
func without(rules []rbacv1.PolicyRule, gone string) []rbacv1.PolicyRule {
	var left []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if right(verb, rule.APIGroups[0], resource) != gone {
					left = append(left, rbacv1.PolicyRule{
						APIGroups: rule.APIGroups, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: rule.ResourceNames,
					})
				}
			}
		}
	}
	return left
}
