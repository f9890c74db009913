package tests

import (
	"context"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTheProjectorCannotReadASecretThatItWasNotGiven(t *testing.T) {
	t.Parallel()
	const secret = "the-password-of-another-0123456789"
	r := newProjectRig(t, nil)
	r.secret("db", map[string]string{"user": "app", "password": "one"})
	r.secret("other", map[string]string{"password": secret})
	r.widget("main", "spec.auth.password=secret/db/password")
	r.widget("curious", "spec.auth.password=secret/other/password")
	// Somebody lets the configuration say more than the permission does.
	r.configure(strings.Replace(string(exampleOf(t, "projections.yaml", r.namespace)), "    secrets:\n",
		"    secrets:\n      - {namespace: "+r.namespace+", name: other, keys: [password]}\n", 1))
	r.startReady()
	r.awaitField("main", "password", "one")
	told := r.awaitProjection("curious", "forbidden")
	if want := "The projector may not read secret/other."; told.Message != want {
		t.Errorf("the message: got %q, want %q", told.Message, want)
	}
	if got := r.field("curious", "password"); got != "none" {
		t.Errorf("the field that wants a Secret that was not given: got %q", got)
	}
	r.leaksNothing(secret)

	// All its rights, as the authorizer knows them, and what its token gets.
	config := configOf(t, r.namespace, projectorAccount)
	client := kubernetes.NewForConfigOrDie(config)
	want := rightsOf("get", "secrets db").and(rightsOf("list watch patch", "widgets.example.org")).and(rightsOf("create", "events")).and(everybodys)
	testkit.WantEqual(t, "rights", want.list(), rightsOfClient(t, client, r.namespace).list())
	testkit.WantEqual(t, "rights in another namespace", everybodys.list(), rightsOfClient(t, client, metav1.NamespaceDefault).list())
	secrets := client.CoreV1().Secrets(r.namespace)
	if _, err := secrets.Get(t.Context(), "db", metav1.GetOptions{}); err != nil {
		t.Errorf("the Secret that it was given: %v", err)
	}
	refused := map[string]error{}
	_, refused["get another"] = secrets.Get(t.Context(), "other", metav1.GetOptions{})
	_, refused["get one of the name in another namespace"] = client.CoreV1().Secrets(metav1.NamespaceDefault).Get(t.Context(), "db", metav1.GetOptions{})
	_, refused["list all"] = secrets.List(t.Context(), metav1.ListOptions{})
	_, refused["list by name"] = secrets.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=db"})
	_, refused["watch"] = secrets.Watch(t.Context(), metav1.ListOptions{})
	for what, err := range refused {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want that it is forbidden", what, err)
		}
	}

	asked := map[string]bool{}
	for _, entry := range r.requests() {
		if entry.Resource == "secrets" && strings.HasPrefix(entry.UserAgent, "keyturn-projector/") {
			asked[entry.Verb+" "+entry.Name] = true
		}
	}
	testkit.WantEqual(t, "what the program asks about Secrets", map[string]bool{"get db": true, "get other": true}, asked)
}

func TestEachRuleOfTheProjectorIsNeeded(t *testing.T) {
	t.Parallel()
	hasEvent := func(r *projectRig) bool {
		list, err := r.kube.CoreV1().Events(r.namespace).List(r.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=main"})
		return err == nil && len(list.Items) > 0
	}
	hasValue := func(r *projectRig) bool { return r.field("main", "password") == "one" }
	tests := []struct {
		right, breaks string
		done, beside  func(*projectRig) bool
	}{
		{"get secrets", "a field has the value", hasValue, hasEvent},
		{"list widgets.example.org", "a field has the value, with an older API server", hasValue, nil},
		{"watch widgets.example.org", "a resource that comes later has its value at once", func(r *projectRig) bool {
			return slices.ContainsFunc(r.requests(), func(entry testbed.AuditEntry) bool { return entry.Verb == "watch" && entry.Code == 200 })
		}, nil},
		{"patch widgets.example.org", "a field has the value", hasValue, hasEvent},
		{"create events", "the resource says what became of it", hasEvent, hasValue},
	}
	for _, tt := range tests {
		t.Run("without "+tt.right+" it is not so that "+tt.breaks, func(t *testing.T) {
			t.Parallel()
			r := newProjectRig(t, func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule { return withoutRight(t, rules, tt.right) })
			r.secret("db", map[string]string{"password": "one"})
			r.widget("main", "spec.auth.password=secret/db/password")
			var env []string
			if strings.HasPrefix(tt.right, "list ") {
				env = []string{"KUBE_FEATURE_WatchListClient=false"} // With an API server that does not stream lists, as those before Kubernetes 1.34.
			}
			r.start(env...)
			testkit.Await(t, "the API server has refused it", func(context.Context) bool {
				return slices.ContainsFunc(r.requests(), func(entry testbed.AuditEntry) bool {
					return entry.Code == 403 && strings.HasPrefix(tt.right, entry.Verb+" "+entry.Resource)
				})
			})
			if tt.beside != nil {
				testkit.Await(t, "what needs other rights happens", func(context.Context) bool { return tt.beside(r) })
			}
			if tt.done(r) {
				t.Errorf("without the right to %s, it is all the same so that %s", tt.right, tt.breaks)
			}
		})
	}
}

// withoutRight returns the rules without a right, such as "patch widgets.example.org". It fails the test if they do not have it.
func withoutRight(t *testing.T, rules []rbacv1.PolicyRule, right string) []rbacv1.PolicyRule {
	t.Helper()
	verb, resource, _ := strings.Cut(right, " ")
	found := false
	for i, rule := range rules {
		group := schema.GroupResource{Group: rule.APIGroups[0], Resource: rule.Resources[0]}
		if group.String() == resource {
			rules[i].Verbs = slices.DeleteFunc(rule.Verbs, func(has string) bool { return has == verb })
			found = found || len(rules[i].Verbs) < len(rule.Verbs)
		}
	}
	if !found {
		t.Fatalf("the account has no right to %s", right)
	}
	return slices.DeleteFunc(rules, func(rule rbacv1.PolicyRule) bool { return len(rule.Verbs) == 0 })
}
