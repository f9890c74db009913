package kube

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
)

// deployed are the policies of deploy for an installation with a target and a projector, and their bindings, by their names.
type deployed struct {
	policies map[string]*admissionv1.ValidatingAdmissionPolicy
	bindings map[string]*admissionv1.ValidatingAdmissionPolicyBinding
}

func readDeployed(t *testing.T) deployed {
	t.Helper()
	d := deployed{map[string]*admissionv1.ValidatingAdmissionPolicy{}, map[string]*admissionv1.ValidatingAdmissionPolicyBinding{}}
	for _, file := range []string{
		"admission/actuator.yaml", "admission/protected.yaml", "admission/keys.yaml", "targets/policy/target.yaml", "components/projector/admission.yaml",
	} {
		content, err := os.ReadFile("../../deploy/" + file)
		testkit.Must(t, err)
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			var meta metav1.TypeMeta
			policy, binding := new(admissionv1.ValidatingAdmissionPolicy), new(admissionv1.ValidatingAdmissionPolicyBinding)
			err := yaml.Unmarshal([]byte(document), &meta)
			if err == nil && meta.Kind == "ValidatingAdmissionPolicy" {
				err = yaml.Unmarshal([]byte(document), policy)
				d.policies[policy.Name] = policy
			} else if err == nil {
				err = yaml.Unmarshal([]byte(document), binding)
				d.bindings[binding.Name] = binding
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
	return d
}

// problems are those that the API server's objects have for an installation that rolls Deployments and widgets.
func (d deployed) problems(t *testing.T, namespace, account string) []string {
	t.Helper()
	var objects []runtime.Object
	for _, policy := range d.policies {
		objects = append(objects, policy)
	}
	for _, binding := range d.bindings {
		objects = append(objects, binding)
	}
	c := Confinement{
		Namespace: namespace, Account: account,
		Resources: []schema.GroupResource{{Group: "apps", Resource: "deployments"}, {Group: "example.org", Resource: "widgets"}},
	}
	states, err := c.Policies(t.Context(), fake.NewClientset(objects...))
	testkit.Must(t, err)
	var problems []string
	for _, state := range states {
		if state.Problem != "" {
			problems = append(problems, state.Name+" "+state.Problem)
		}
	}
	slices.Sort(problems)
	return problems
}

func TestNoPolicyAndNoBindingIsLostUnnoticed(t *testing.T) {
	all := readDeployed(t)
	if got := all.problems(t, "keyturn-system", ""); len(got) > 0 || len(all.policies) != 5 || len(all.bindings) != 7 {
		t.Fatalf("of %d policies and %d bindings as in deploy: got %q, want no problem", len(all.policies), len(all.bindings), got)
	}
	for name := range all.policies {
		without := deployed{maps.Clone(all.policies), all.bindings}
		delete(without.policies, name)
		if got := without.problems(t, "keyturn-system", ""); !slices.Contains(got, name+" is missing") {
			t.Errorf("without the policy %s: got %q", name, got)
		}
	}
	for name, binding := range all.bindings {
		without := deployed{all.policies, maps.Clone(all.bindings)}
		delete(without.bindings, name)
		want := fmt.Sprintf("%s lacks the binding %s that denies", binding.Spec.PolicyName, name)
		testkit.WantEqual(t, "without the binding "+name, []string{want}, without.problems(t, "keyturn-system", ""))
	}
}

func TestAPolicyThatConfinesNobodyIsNoticed(t *testing.T) {
	const actuator, keys, protected, widgets = "keyturn-system-actuator", "keyturn-system-keys", "keyturn-system-protected", "keyturn-system-target"
	for _, tt := range []struct {
		name, account string
		change        func(deployed)
		want          []string
	}{
		{"the account is that of the policies", "system:serviceaccount:keyturn-system:keyturn-actuator", func(deployed) {}, nil},
		{"the account is another", "system:serviceaccount:keyturn-system:roller", func(deployed) {}, []string{
			actuator + " does not name system:serviceaccount:keyturn-system:roller", protected + " does not name system:serviceaccount:keyturn-system:roller",
		}},
		{
			"a binding only warns", "",
			func(d deployed) {
				d.bindings[keys].Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
			},
			[]string{keys + " lacks the binding " + keys + " that denies"},
		},
		{
			"a binding is for some namespaces", "",
			func(d deployed) {
				selector := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "shop"}}
				d.bindings[actuator].Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: selector}
			},
			[]string{actuator + " lacks the binding " + actuator + " that denies"},
		},
		{
			"the API server has filled in that a binding is for all", "",
			func(d deployed) {
				d.bindings[actuator].Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: new(metav1.LabelSelector)}
			}, nil,
		},
		{
			"a policy fails open", "", func(d deployed) { d.policies[protected].Spec.FailurePolicy = new(admissionv1.Ignore) },
			[]string{protected + " lets pass what it cannot evaluate"},
		},
		{
			"the job's policy is for the job of another namespace", "",
			func(d deployed) {
				d.policies[keys].Spec.MatchConditions[0].Expression = "request.userInfo.username in ['system:serviceaccount:tools:keyturn-keys']"
			},
			[]string{keys + " does not name system:serviceaccount:keyturn-system"},
		},
		{
			"a resource that is rolled has no policy", "", func(d deployed) { delete(d.policies, widgets); delete(d.bindings, widgets) },
			[]string{"for widgets.example.org is missing"},
		},
		{
			"all are deleted", "", func(d deployed) { clear(d.policies); clear(d.bindings) },
			[]string{actuator + " is missing", keys + " is missing", protected + " is missing"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := readDeployed(t)
			tt.change(all)
			testkit.WantEqual(t, "problems", tt.want, all.problems(t, "keyturn-system", tt.account))
		})
	}
}

func TestThePoliciesOfAnotherNamespaceAreKnownByTheirNames(t *testing.T) {
	for _, tt := range []struct{ name, prefix, tail string }{
		{"by the chart", "team-", ""},
		{"by deploy/namespace", "keyturn-system-", ".team"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rename := func(name string) string { return tt.prefix + strings.TrimPrefix(name, "keyturn-system-") + tt.tail }
			read, all := readDeployed(t), readDeployed(t) // The installation of the usual namespace is there, too.
			for _, policy := range read.policies {
				policy.Name = rename(policy.Name)
				first := &policy.Spec.MatchConditions[0].Expression
				*first = strings.ReplaceAll(*first, ":keyturn-system:", ":team:")
				all.policies[policy.Name] = policy
			}
			for _, binding := range read.bindings {
				binding.Name, binding.Spec.PolicyName = rename(binding.Name), rename(binding.Spec.PolicyName)
				all.bindings[binding.Name] = binding
			}
			own := rename("keyturn-system-protected-own")
			if got := all.problems(t, "team", ""); len(got) > 0 {
				t.Errorf("got %q, want no problem", got)
			}
			delete(all.bindings, own)
			want := []string{rename("keyturn-system-protected") + " lacks the binding " + own + " that denies"}
			testkit.WantEqual(t, "without "+own, want, all.problems(t, "team", ""))
			if got := all.problems(t, "keyturn-system", ""); len(got) > 0 {
				t.Errorf("of the other installation: got %q, want no problem", got)
			}
		})
	}
}
