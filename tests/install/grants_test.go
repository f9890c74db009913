package install

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/keyturn/keyturn/tests/rights"
)

// withoutRight returns the grants without one right of an account, which it must have.
func withoutRight(t *testing.T, grants []rights.Grant, account, gone string) []rights.Grant {
	t.Helper()
	left, found := slices.Clone(grants), false
	for i, given := range grants {
		if given.Account == account && rightsOf(given.Rules)[gone] {
			left[i].Rules, found = without(given.Rules, gone), true
		}
	}
	if !found {
		t.Fatalf("%s has no right to %s", account, gone)
	}
	return left
}

// without returns the rules without one right, as one rule for each verb and resource.
func without(rules []rbacv1.PolicyRule, gone string) []rbacv1.PolicyRule {
	var left []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if rights.Right(verb, rule.APIGroups[0], resource) != gone {
					left = append(left, rbacv1.PolicyRule{
						APIGroups: rule.APIGroups, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: rule.ResourceNames,
					})
				}
			}
		}
	}
	return left
}
