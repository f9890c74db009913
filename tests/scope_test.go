package tests

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit/templates"
)

// tierLabel is what selects sources and namespaces in the tests of this file.
const tierLabel = "example.com/tier"

// The right that it grants to the account that all watchers share disturbs nobody: tests that look at all rights are not parallel, and so over by then.
func TestSelectorsNarrowTheSourcesAndTheNamespaces(t *testing.T) {
	t.Parallel()
	letWatchersSeeNamespaces(t)
	outside := plane.Namespace(t)
	r := newClusterRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms", "--namespaces", outside}})
	there := *r // the same programs, seen from the other namespace
	there.namespace = outside
	var err error
	if there.templates, err = templates.Watch(t.Context(), r.client, outside); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(there.templates.Stop)
	secret := events.KindSecret
	for _, name := range []string{"in", "out"} {
		r.write(secret, name, map[string]string{"password": "one"})
		r.create(workload{name: name, on: "auto", read: readsAll(secret, name)})
		r.create(workload{name: name + "-optional", on: "auto", read: optionalAll(secret, name)})
	}
	for _, place := range []*rig{r, &there} {
		place.write(secret, "db", map[string]string{"password": "one"})
		place.create(workload{name: "web", on: "auto", read: readsAll(secret, "db")})
		place.create(workload{name: "optional", on: "auto", read: optionalAll(secret, "db")})
	}
	r.placeFence()
	r.startActuator()
	r.step("a selector narrows the sources", (*rig).selectsSources)
	r.step("a selector of namespaces narrows the namespaces", func(r *rig) {
		place := there
		place.T = r.T
		r.selectsNamespaces(&place)
	})
}

// selectsSources starts a watcher of the Secrets and ConfigMaps of a tier.
func (r *rig) selectsSources() {
	r.Helper()
	secret := events.KindSecret
	in, out := once("statefulset/in", "statefulset/in-optional"), once("statefulset/out", "statefulset/out-optional")
	r.label(secret, "in", tierLabel, "web")
	r.label(secret, "out", tierLabel, "data")
	for _, kind := range []events.Kind{events.KindSecret, events.KindConfigMap} {
		r.label(kind, "fence-"+string(kind), tierLabel, "web")
	}
	r.startWatcher("--selector", tierLabel+"=web")

	r.rolls("sources change that are selected and not", in, func() {
		r.set(secret, "in", "password", "two")
		r.set(secret, "out", "password", "two")
	})
	// Younger pods count as new: the API server's times have no higher resolution.
	created := r.source(secret, "out").GetCreationTimestamp()
	r.eventually("the source is some seconds old", func(context.Context) bool { return time.Since(created.Time) > 4*time.Second })
	r.rollsNothing("a source comes into scope", func() { r.label(secret, "out", tierLabel, "web") })
	r.rolls("the source changes", out, func() { r.set(secret, "out", "password", "three") })
	r.rollsNothing("the source leaves the scope", func() { r.label(secret, "out", tierLabel, nil) })
	r.rollsNothing("the source comes back unchanged", func() { r.label(secret, "out", tierLabel, "web") })
	r.rollsNothing("the source changes out of scope", func() {
		r.label(secret, "out", tierLabel, nil)
		r.passFence()
		r.set(secret, "out", "password", "four")
	})
	r.rolls("the source comes back changed", out, func() { r.label(secret, "out", tierLabel, "web") })
}

// selectsNamespaces starts a watcher of the namespaces of a tier, of which the rig's is one.
func (r *rig) selectsNamespaces(there *rig) {
	r.Helper()
	secret, both := events.KindSecret, once("statefulset/web", "statefulset/optional")
	r.stop(r.watcher)
	r.labelNamespace("web")
	r.startWatcher("--namespace-selector", tierLabel+"=web")
	r.passFence()

	before := there.tally()
	r.rolls("a source changes in each of the namespaces", both, func() {
		there.set(secret, "db", "password", "two")
		r.set(secret, "db", "password", "two")
	})
	r.rollsNothing("the other namespace comes into scope", func() { there.labelNamespace("web") })
	if rolled := there.tally().since(before); len(rolled) > 0 {
		r.Errorf("rollouts in the other namespace: got %v, want none for what happened out of scope", rolled)
	}
	r.rollsNothing("a source changes there", func() {
		there.set(secret, "db", "password", "three")
		r.eventually("the workloads there roll", func(context.Context) bool { return there.seen().since(before).covers(both) })
	})
	if diff := cmp.Diff(both, there.tally().since(before)); diff != "" {
		r.Errorf("rollouts in the other namespace (-want +got):\n%s", diff)
	}
}

// letWatchersSeeNamespaces grants the right that a selector of namespaces needs, for as long as the test goes on: the others
// are to find the rights of deploy/base and no more.
func letWatchersSeeNamespaces(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		const name = "keyturn-watcher-namespaces"
		ctx, rbac := context.WithoutCancel(t.Context()), kubernetes.NewForConfigOrDie(plane.Config()).RbacV1()
		if err := rbac.ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := rbac.ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	err := plane.ApplyKinds(t.Context(), testbed.RBACKinds(), "../deploy/components/namespace-selector/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
}

// labelNamespace labels the namespace of the rig.
func (r *rig) labelNamespace(tier string) {
	r.Helper()
	body := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, tierLabel, tier)
	_, err := r.client.CoreV1().Namespaces().Patch(r.Context(), r.namespace, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		r.Fatal(err)
	}
}
