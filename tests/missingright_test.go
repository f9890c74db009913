package tests

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// without removes verbs on a resource from the cluster role of an account, until the test ends or grant is called. It
// returns when the API server applies the change. The programs of all tests share the account: one that calls it is not parallel.
func (r *rig) without(account, resource string, verbs ...string) (grant func()) {
	r.Helper()
	roles := r.client.RbacV1().ClusterRoles()
	role, err := roles.Get(r.Context(), account, metav1.GetOptions{})
	testkit.Must(r, err)
	var rules []rbacv1.PolicyRule
	for _, rule := range role.Rules {
		// Each resource gets its own rule, so that the others keep their verbs.
		for _, other := range rule.Resources {
			single := rule.DeepCopy()
			single.Resources = []string{other}
			if other == resource {
				single.Verbs = slices.DeleteFunc(single.Verbs, func(verb string) bool { return slices.Contains(verbs, verb) })
			}
			if len(single.Verbs) > 0 {
				rules = append(rules, *single)
			}
		}
	}
	role.Rules = rules
	if _, err := roles.Update(r.Context(), role, metav1.UpdateOptions{}); err != nil {
		r.Fatal(err)
	}
	has := func() bool {
		for right := range rightsIn(r.T, account, r.namespace) {
			fields := strings.Fields(right)
			if slices.Contains(verbs, fields[0]) && schema.ParseGroupResource(fields[1]).Resource == resource {
				return true
			}
		}
		return false
	}
	restore := func() {
		if err := plane.ApplyKinds(context.WithoutCancel(r.Context()), testbed.RBACKinds(), "../deploy/base/rbac.yaml"); err != nil {
			r.Error(err)
		}
	}
	r.Cleanup(restore)
	r.eventually("the right is gone", func(context.Context) bool { return !has() })
	return func() {
		restore()
		r.eventually("the right is there again", func(context.Context) bool { return has() })
	}
}

func TestAnActuatorThatMayNotPatchSaysSoAndRollsOnceItMay(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	grant := r.without(actuatorAccount, "deployments", "patch")
	r.start()
	before := r.generations()
	r.secret("db", map[string]string{"password": "two"})
	r.eventually("the actuator says which right is missing", func(context.Context) bool {
		return strings.Contains(r.actuator.Output(), `cannot patch resource \"deployments\" in API group \"apps\" in the namespace \"`+r.namespace+`\"`)
	})
	if now := r.generations(); !maps.Equal(now, before) {
		t.Fatalf("generations: got %v, want %v: how did it patch without the right?", now, before)
	}
	grant()
	r.outcomeOf("web", events.VerbCompleted)
	r.quiet()
	if got, want := r.generations()["web"], before["web"]+1; got != want {
		t.Errorf("generation: got %d, want %d", got, want)
	}
	if letters := r.deadLetters(); len(letters) > 0 {
		t.Errorf("dead letters: got %v, want none", letters)
	}
}
