package chart

import (
	"fmt"
	"strings"
	"testing"
)

func TestAGroupThatTheActuatorRefusesIsRefused(t *testing.T) {
	const form = "targets: [{apiVersion: %s, kind: Widget, resource: widgets, trigger: {annotations: spec.a}}]"
	for _, version := range []string{
		"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1", "argoproj.io/v1alpha1", "external-secrets.io/v1",
		"example.org", "example.org/v1/v2", ".example.org/v1",
	} {
		refuses(t, fmt.Sprintf(form, version), "/targets/0/apiVersion")
	}
	for _, version := range []string{"example.org/v1", "monitoring.coreos.com/v1", "postgres-operator.crunchydata.com/v1beta1", "ak8s.io/v1"} {
		rendered(t, fmt.Sprintf(form, version))
	}
}

// The programs refuse what is there twice, and of two policies of one name the API server keeps one.
func TestAKindThatIsThereTwiceIsRefused(t *testing.T) {
	const (
		target     = "{apiVersion: %s, kind: %s, resource: %s, trigger: {annotations: spec.a}}"
		named      = "{apiVersion: other.org/v1, kind: Cluster, name: other, resource: clusters, trigger: {annotations: spec.a}}"
		projection = "{apiVersion: %s, kind: User, resource: users, paths: [spec.a], secrets: [{namespace: a, name: b, keys: [c]}]}"
	)
	cluster := fmt.Sprintf(target, "example.org/v1", "Cluster", "clusters")
	user := fmt.Sprintf(projection, "example.org/v1")
	for _, tt := range []struct{ name, values, want string }{
		{
			"two targets of a name", "targets: [" + cluster + ", " + fmt.Sprintf(target, "other.org/v1", "Cluster", "clusters") + "]",
			"targets[1].name: \"cluster\" is the name of targets[0], too, want another name for one of them\n",
		},
		{
			"two targets of a resource", "targets: [" + cluster + ", " + fmt.Sprintf(target, "example.org/v2", "Group", "clusters") + "]",
			"targets[1].resource: clusters.example.org is that of targets[0], too, want it once\n",
		},
		{
			"two projections of a kind",
			"projector: {enabled: true, projections: [" + user + ", " + fmt.Sprintf(projection, "other.org/v1") + "]}",
			"projector.projections[1].kind: \"User\" is that of projections[0], too, want each kind once\n",
		},
		{"two names", "targets: [" + cluster + ", " + named + "]", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := template(t, tt.values)
			if (err == nil) != (tt.want == "") || !strings.Contains(out, tt.want) {
				t.Errorf("got %v, want %q in\n%.300s", err, tt.want, out)
			}
		})
	}
}

// The policies are made by replacing parts of a text. What a target is called may look like such a part.
func TestThePolicyOfATargetHasItsValuesAsTheyAre(t *testing.T) {
	const (
		targets = "targets: [{apiVersion: keyturn-system.example.org/v1, kind: ACCOUNT, name: account, resource: widgets, " +
			"trigger: {field: \"metadata.annotations['keyturn-system/PROTECTED']\", value: revision}}]"
		about = "object.involvedObject.kind in ['ACCOUNT'] && object.involvedObject.?apiVersion.orValue('').startsWith('keyturn-system.example.org/')"
	)
	for _, namespace := range []string{systemNamespace, "keyturn-system-tools"} {
		all := objects(t, releasedIn(t, namespace, targets))
		policy, known := all["ValidatingAdmissionPolicy <nil>/"+namespace+"-target-account"]
		if !known {
			t.Fatalf("in %s: there is no policy of the target", namespace)
		}
		if binding := all["ValidatingAdmissionPolicyBinding <nil>/"+namespace+"-target-account"]; binding.at("spec", "policyName") != policy.at("metadata", "name") {
			t.Errorf("in %s: the policy %v is not bound", namespace, policy.at("metadata", "name"))
		}
		conditions, _ := policy.at("spec", "matchConditions").([]any)
		rules, _ := policy.at("spec", "matchConstraints", "resourceRules").([]any)
		variables, _ := policy.at("spec", "variables").([]any)
		others, _ := all["ValidatingAdmissionPolicy <nil>/"+namespace+"-actuator"].at("spec", "matchConditions").([]any)
		for what, held := range map[string]struct{ in, want string }{
			"the account":               {fmt.Sprint(conditions[0]), "'system:serviceaccount:" + namespace + ":keyturn-actuator'"},
			"the kind":                  {fmt.Sprint(conditions[1]), about},
			"the group":                 {fmt.Sprint(rules[0]), "apiGroups:[keyturn-system.example.org]"},
			"the annotation":            {fmt.Sprint(variables[2]), "'keyturn-system/PROTECTED']"},
			"the protected namespaces":  {fmt.Sprint(variables[4]), "[request.userInfo.username.split(':')[2], 'kube-system']"},
			"the kind in the other one": {fmt.Sprint(others), about},
		} {
			if !strings.Contains(held.in, held.want) {
				t.Errorf("in %s: %s: got %s, want %s", namespace, what, held.in, held.want)
			}
		}
	}
}
