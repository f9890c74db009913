package install

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/rights"
	"github.com/keyturn/keyturn/tests/testbed"
)

func (i *installation) auditEnd() int64 {
	i.Helper()
	end, err := plane.AuditEnd()
	if err != nil {
		i.Fatal(err)
	}
	return end
}

// audit returns the requests of a user since an offset of the audit log.
func (i *installation) audit(begin int64, user string) []testbed.AuditEntry {
	i.Helper()
	entries, _, err := plane.AuditSince(begin)
	if err != nil {
		i.Fatal(err)
	}
	return testbed.Requests(entries, user)
}

// usesItsRole holds that each account asked for nothing that it may not have, and for all that it may.
func (i *installation) usesItsRole(begin int64) {
	i.Helper()
	for _, program := range []string{"keys", "watcher", "actuator"} {
		allowed, used := i.granted("keyturn-"+program), map[string]bool{}
		for _, entry := range i.audit(begin, testbed.ServiceAccountUser(programs.SystemNamespace, "keyturn-"+program)) {
			// Which cluster it is, is asked of every one. In one namespace nobody may know.
			if i.namespaced && entry.Code == 403 && entry.Resource == "namespaces" && entry.Name == "kube-system" {
				continue
			}
			if entry.Code == 401 || entry.Code == 403 || entry.Code >= 500 {
				i.Errorf("%s: %s %s: status %d", program, entry.Verb, entry.URI, entry.Code)
			}
			if i.namespaced && entry.Namespace != i.namespace && entry.Namespace != programs.SystemNamespace {
				i.Errorf("%s: %s %s: outside of its namespace", program, entry.Verb, entry.URI)
			}
			used[rights.Right(entry.Verb, entry.Group, entry.Resource)] = true
		}
		for name := range used {
			if !allowed[name] {
				i.Errorf("the %s used %s, which no rule of its roles gives", program, name)
			}
		}
		for name := range allowed {
			// An API server that streams lists is not asked for any: TestEachRightIsUsed has another one. And a certificate is renewed after
			// years: TestEachRightOfTheJobOfTheKeysIsUsed has one that is due.
			if verb, _, _ := strings.Cut(name, " "); !used[name] && verb != "list" && name != "update secrets" {
				i.Errorf("the %s did not use %s", program, name)
			}
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
	if err != nil {
		i.Fatal(err)
	}
	for _, binding := range bindings.Items {
		if !mine(binding.Subjects) {
			continue
		}
		role, err := rbac.Roles(binding.Namespace).Get(i.Context(), binding.RoleRef.Name, metav1.GetOptions{})
		if err != nil {
			i.Fatal(err)
		}
		maps.Copy(granted, rightsOf(role.Rules))
	}
	clusterBindings, err := rbac.ClusterRoleBindings().List(i.Context(), metav1.ListOptions{})
	if err != nil {
		i.Fatal(err)
	}
	for _, binding := range clusterBindings.Items {
		if !mine(binding.Subjects) {
			continue
		}
		role, err := rbac.ClusterRoles().Get(i.Context(), binding.RoleRef.Name, metav1.GetOptions{})
		if err != nil {
			i.Fatal(err)
		}
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
	content, err := os.ReadFile(filepath.Join(i.own.Dir, name))
	if err != nil {
		i.Fatal(err)
	}
	i.write(name, strings.ReplaceAll(string(content), old, with))
}
