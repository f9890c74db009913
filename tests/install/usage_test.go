package install

import (
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/rights"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

func (i *installation) auditEnd() int64 {
	i.Helper()
	end, err := plane.AuditEnd()
	testkit.Must(i, err)
	return end
}

// audit returns the requests of a user since an offset of the audit log.
func (i *installation) audit(begin int64, user string) []testbed.AuditEntry {
	i.Helper()
	entries, _, err := plane.AuditSince(begin)
	testkit.Must(i, err)
	return testbed.Requests(entries, user)
}

// usesItsRole holds that each account asked for nothing that it may not have, and for all that it may.
func (i *installation) usesItsRole(begin int64) {
	i.Helper()
	for _, program := range []string{"keys", "watcher", "actuator"} {
		i.usesTheRoleOf("keyturn-"+program, begin)
	}
}

func (i *installation) usesTheRoleOf(account string, begin int64) {
	i.Helper()
	allowed, used := i.granted(account), map[string]bool{}
	for _, entry := range i.audit(begin, testbed.ServiceAccountUser(programs.SystemNamespace, account)) {
		// Which cluster it is, is asked of every one, and the actuator asks which policies there are. In one namespace nobody may know.
		ofTheCluster := entry.Resource == "namespaces" && entry.Name == "kube-system" || entry.Group == "admissionregistration.k8s.io"
		if i.namespaced && entry.Code == 403 && ofTheCluster {
			continue
		}
		// An API server that has no time says so by a 504.
		if entry.Code == 401 || entry.Code == 403 || entry.Code >= 500 && entry.Code != http.StatusGatewayTimeout {
			i.Errorf("%s: %s %s: status %d", account, entry.Verb, entry.URI, entry.Code)
		}
		if i.namespaced && entry.Namespace != i.namespace && entry.Namespace != programs.SystemNamespace {
			i.Errorf("%s: %s %s: outside of its namespace", account, entry.Verb, entry.URI)
		}
		used[rights.Right(entry.Verb, entry.Group, entry.Resource)] = true
	}
	for name := range used {
		if !allowed[name] {
			i.Errorf("%s used %s, which no rule of its roles gives", account, name)
		}
	}
	for name := range allowed {
		// An API server that streams lists is not asked for any: TestEachRightIsUsed has another one. And a certificate is renewed after
		// years: TestEachRightOfTheJobOfTheKeysIsUsed has one that is due.
		if verb, _, _ := strings.Cut(name, " "); !used[name] && verb != "list" && name != "update secrets" {
			i.Errorf("%s did not use %s", account, name)
		}
	}
}

// granted are the rights of an account, by the roles that are bound to it in the cluster.
func (i *installation) granted(account string) map[string]bool {
	i.Helper()
	granted := map[string]bool{}
	mine := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == programs.SystemNamespace && s.Name == account
		})
	}
	rbac := i.kube.RbacV1()
	bindings, err := rbac.RoleBindings(metav1.NamespaceAll).List(i.Context(), metav1.ListOptions{})
	testkit.Must(i, err)
	for _, binding := range bindings.Items {
		if !mine(binding.Subjects) {
			continue
		}
		role, err := rbac.Roles(binding.Namespace).Get(i.Context(), binding.RoleRef.Name, metav1.GetOptions{})
		testkit.Must(i, err)
		maps.Copy(granted, rightsOf(role.Rules))
	}
	clusterBindings, err := rbac.ClusterRoleBindings().List(i.Context(), metav1.ListOptions{})
	testkit.Must(i, err)
	for _, binding := range clusterBindings.Items {
		if !mine(binding.Subjects) {
			continue
		}
		role, err := rbac.ClusterRoles().Get(i.Context(), binding.RoleRef.Name, metav1.GetOptions{})
		testkit.Must(i, err)
		maps.Copy(granted, rightsOf(role.Rules))
	}
	if len(granted) == 0 {
		i.Fatalf("no role is bound to %s", account)
	}
	return granted
}

// rightsOf splits rules into permissions: a verb and a resource each.
func rightsOf(rules []rbacv1.PolicyRule) map[string]bool {
	split := map[string]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					split[rights.Right(verb, group, resource)] = true
				}
			}
		}
	}
	return split
}

// replace changes a file of the operator's repository.
func (i *fluxInstallation) replace(name, old, with string) {
	i.Helper()
	content := testkit.ReadFile(i.T, filepath.Join(i.own.Dir, name))
	i.write(name, strings.ReplaceAll(content, old, with))
}
