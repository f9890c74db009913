package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
)

// Confinement is an installation whose accounts are confined by admission policies: those of deploy/admission, of its targets and of its projector.
type Confinement struct {
	// Namespace is the namespace of the installation.
	Namespace string
	// Account is the actuator's, such as system:serviceaccount:keyturn-system:keyturn-actuator. Empty means the account in the actuator's policy.
	Account string
	// Resources are the resources that the account rolls.
	Resources []schema.GroupResource
}

// PolicyMissing is the problem of a policy that does not exist.
const PolicyMissing = "is missing"

// PolicyState is the state of an admission policy that must confine an account.
type PolicyState struct {
	Name string
	// Problem is why the policy does not confine the account, empty if it does.
	Problem string
}

// Policies returns the state of each policy that the installation needs, and of the policies of its targets and projections. Resources without a
// policy have an entry, too.
func (c Confinement) Policies(ctx context.Context, client kubernetes.Interface) ([]PolicyState, error) {
	policies, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing admission policies: %w", err)
	}
	bindings, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing bindings of admission policies: %w", err)
	}
	return c.states(admissionPolicies{policies.Items, bindings.Items}), nil
}

func (c Confinement) states(all admissionPolicies) []PolicyState {
	prefix, tail := c.names(all)
	actuator, protected, keys := prefix+"actuator"+tail, prefix+"protected"+tail, prefix+"keys"+tail
	// The accounts of the job, and of a single pod that creates its keys, have names that an installation chooses.
	account, own := "'"+c.Account+"'", "'system:serviceaccount:"+c.Namespace+":"
	if c.Account == "" {
		account = accountOf(all.named(actuator))
	}
	// The bindings for the protected namespaces select namespaces, and the others select nothing.
	selective := []string{protected, prefix + "protected-own" + tail, prefix + "protected-by-label" + tail}
	states := []PolicyState{
		{actuator, all.problem(actuator, account, nil)}, {protected, all.problem(protected, account, selective)}, {keys, all.problem(keys, own, nil)},
	}
	for _, name := range all.further(own, prefix, tail) {
		states = append(states, PolicyState{name, all.problem(name, own, nil)})
	}
	if states[0].Problem != "" {
		return states // Without that policy, most resources have none.
	}
	for _, resource := range c.Resources {
		isFor := func(p admissionv1.ValidatingAdmissionPolicy) bool {
			return p.Name != protected && strings.Contains(accountOf(&p), account) && covers(&p, resource)
		}
		if !slices.ContainsFunc(all.policies, isFor) {
			states = append(states, PolicyState{"for " + resource.String(), PolicyMissing})
		}
	}
	return states
}

// names returns the prefix and the suffix of the policies' names: keyturn-system-actuator, in the chart with the release's namespace, and in
// deploy/namespace with the namespace as the suffix.
func (c Confinement) names(all admissionPolicies) (prefix, tail string) {
	const usual = "keyturn-system-"
	tail = "." + c.Namespace
	if slices.ContainsFunc(all.policies, func(p admissionv1.ValidatingAdmissionPolicy) bool {
		return strings.HasPrefix(p.Name, usual) && strings.HasSuffix(p.Name, tail)
	}) {
		return usual, tail
	}
	return c.Namespace + "-", ""
}

// admissionPolicies are the policies of an API server, with their bindings.
type admissionPolicies struct {
	policies []admissionv1.ValidatingAdmissionPolicy
	bindings []admissionv1.ValidatingAdmissionPolicyBinding
}

// further returns the names of the policies of targets and projections: policies for an account of the installation, and those of which only the
// bindings are left.
func (a admissionPolicies) further(own, prefix, tail string) []string {
	isFurther := func(labels map[string]string) bool {
		return labels["keyturn.dev/target"]+labels["keyturn.dev/projection"] != ""
	}
	var names []string
	for i := range a.policies {
		if policy := &a.policies[i]; isFurther(policy.Labels) && strings.Contains(accountOf(policy), own) {
			names = append(names, policy.Name)
		}
	}
	for i := range a.bindings {
		binding := &a.bindings[i]
		isOwn := strings.HasPrefix(binding.Name, prefix) && strings.HasSuffix(binding.Name, tail)
		if isFurther(binding.Labels) && isOwn && a.named(binding.Spec.PolicyName) == nil {
			names = append(names, binding.Spec.PolicyName)
		}
	}
	return names
}

// named returns the policy with a name, or nil.
func (a admissionPolicies) named(name string) *admissionv1.ValidatingAdmissionPolicy {
	for i := range a.policies {
		if a.policies[i].Name == name {
			return &a.policies[i]
		}
	}
	return nil
}

// problem returns why a policy does not confine an account, or "" if it does. Selective are its bindings if they select namespaces. Otherwise it has
// one binding, with its own name and without a selection.
func (a admissionPolicies) problem(name, account string, selective []string) string {
	policy := a.named(name)
	switch {
	case policy == nil:
		return PolicyMissing
	case !strings.Contains(accountOf(policy), account):
		return "does not name " + strings.Trim(account, "':")
	case policy.Spec.FailurePolicy != nil && *policy.Spec.FailurePolicy != admissionv1.Fail:
		return "lets pass what it cannot evaluate"
	}
	bindings := selective
	if bindings == nil {
		bindings = []string{name}
	}
	for _, binding := range bindings {
		denies := func(b admissionv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Name == binding && b.Spec.PolicyName == name && slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) &&
				(selective != nil || selectsNothing(b.Spec.MatchResources))
		}
		if !slices.ContainsFunc(a.bindings, denies) {
			return "lacks the binding " + binding + " that denies"
		}
	}
	return ""
}

// selectsNothing reports whether a binding applies to all objects of its policy.
func selectsNothing(m *admissionv1.MatchResources) bool {
	isEmpty := func(s *metav1.LabelSelector) bool { return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 }
	return m == nil || isEmpty(m.NamespaceSelector) && isEmpty(m.ObjectSelector) && len(m.ResourceRules)+len(m.ExcludeResourceRules) == 0
}

// accountOf returns the expression by which a policy identifies its account, which is its first condition.
func accountOf(policy *admissionv1.ValidatingAdmissionPolicy) string {
	if policy == nil || len(policy.Spec.MatchConditions) == 0 {
		return ""
	}
	return policy.Spec.MatchConditions[0].Expression
}

// covers reports whether a policy applies to a resource.
func covers(policy *admissionv1.ValidatingAdmissionPolicy, resource schema.GroupResource) bool {
	return policy.Spec.MatchConstraints != nil &&
		slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules, func(rule admissionv1.NamedRuleWithOperations) bool {
			return slices.Contains(rule.APIGroups, resource.Group) && slices.Contains(rule.Resources, resource.Resource)
		})
}
