package rights

import (
	"net/http"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/keyturn/keyturn/tests/testbed"
)

// Permission is one verb on one resource, as a rule grants it to an account.
type Permission struct {
	Account, Verb, Group, Resource string
	// Name is that of the only object, if the rule names any, and Namespace that of the binding, if it is of a Role.
	Name, Namespace string
}

// String is such as "keyturn-actuator: get leases.coordination.k8s.io keyturn-actuator in keyturn-system".
func (p Permission) String() string {
	text := p.Account + ": " + Right(p.Verb, p.Group, p.Resource)
	if p.Name != "" {
		text += " " + p.Name
	}
	if p.Namespace != "" {
		text += " in " + p.Namespace
	}
	return text
}

// Right is a verb on a resource, such as "get leases.coordination.k8s.io".
func Right(verb, group, resource string) string {
	return strings.TrimSuffix(verb+" "+resource+"."+group, ".")
}

// IsUsedBy reports whether a request of a user was answered that needs the permission, whose namespace is another one in a test. Who looks for a
// Lease or a Secret that is not there yet has used it, too.
func (p Permission) IsUsedBy(entry testbed.AuditEntry, user, namespace string) bool {
	resource := entry.Resource
	if entry.Subresource != "" {
		resource += "/" + entry.Subresource
	}
	answered := entry.Code/100 == 2 || entry.Verb == "get" && entry.Code == http.StatusNotFound
	return answered && entry.User == user && entry.Verb == p.Verb && entry.Group == p.Group && resource == p.Resource &&
		(p.Name == "" || entry.Name == p.Name) && (namespace == "" || entry.Namespace == namespace)
}

// PermissionsOf splits what bindings give into permissions.
func PermissionsOf(grants []Grant) []Permission {
	var all []Permission
	for _, given := range grants {
		for _, rule := range given.Rules {
			all = append(all, given.permissions(rule)...)
		}
	}
	return all
}

// permissions splits one of the rules.
func (g Grant) permissions(rule rbacv1.PolicyRule) []Permission {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []Permission
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, Permission{
						Account: g.Account, Verb: verb, Group: group, Resource: resource, Name: name, Namespace: g.Namespace,
					})
				}
			}
		}
	}
	return all
}
