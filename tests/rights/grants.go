package rights

import (
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// deploy is the folder of the manifests, from the folder of a package beside this one.
const deploy = "../../deploy"

// Grant is what a binding of a manifest gives an account.
type Grant struct {
	Account string
	// Namespace is that of the binding, empty if it is for the whole cluster.
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// GrantsOf returns what manifests of deploy give.
func GrantsOf(t testing.TB, manifests ...string) []Grant {
	t.Helper()
	var all []Grant
	for _, manifest := range manifests {
		path := filepath.Join(deploy, manifest)
		all = append(all, readGrants(t, path, testkit.ReadFile(t, path))...)
	}
	return all
}

// readGrants returns what a manifest gives, following its own bindings.
func readGrants(t testing.TB, path, content string) []Grant {
	t.Helper()
	objects, err := testbed.ReadManifests(strings.NewReader(content))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	roles := map[rbacv1.RoleRef][]rbacv1.PolicyRule{}
	for _, object := range objects {
		if strings.HasSuffix(object.GetKind(), "Role") {
			var role rbacv1.ClusterRole
			fromObject(t, object, &role)
			roles[rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name}] = role.Rules
		}
	}
	var given []Grant
	bound := 0
	for _, object := range objects {
		if !strings.HasSuffix(object.GetKind(), "RoleBinding") {
			continue
		}
		var binding rbacv1.ClusterRoleBinding
		fromObject(t, object, &binding)
		for _, subject := range binding.Subjects {
			given = append(given, Grant{Account: subject.Name, Namespace: binding.Namespace, Rules: roles[binding.RoleRef]})
		}
		bound++
	}
	if bound != len(roles) || len(given) == 0 {
		t.Fatalf("%s: got %d roles and %d bindings, want one for each", path, len(roles), bound)
	}
	return given
}

func fromObject(t testing.TB, object *unstructured.Unstructured, into any) {
	t.Helper()
	testkit.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into))
}
