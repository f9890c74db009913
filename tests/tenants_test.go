package tests

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// tenants prepares the programs for two namespaces, that of the rig returned first, which behaves, and that of the second.
func tenants(t *testing.T, args ...string) (shop, bank *rig) {
	t.Helper()
	return tenantsIn(t, plane.Namespace(t), args...)
}

// tenantsIn does the same with a namespace that the first one has.
func tenantsIn(t *testing.T, namespace string, args ...string) (shop, bank *rig) {
	t.Helper()
	other := plane.Namespace(t)
	shop = newRigIn(t, namespace, programs.Options{
		WatcherArgs: []string{"--namespaces", other}, ActuatorArgs: append([]string{"--namespaces", other, "--settle", "50ms"}, args...),
	})
	there := *shop // the same programs, seen from the other namespace
	there.namespace = other
	return shop, &there
}

// createStuck creates a Deployment whose pods find no node, and whose rollouts neither end nor fail before the test does.
func (r *rig) createStuck(deployment *appsv1.Deployment) {
	r.Helper()
	deployment.Spec.Template.Spec.NodeSelector = map[string]string{"example.com/nowhere": "true"}
	if _, err := r.client.AppsV1().Deployments(r.namespace).Create(r.Context(), deployment, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// told returns the outcomes at workloads of the rig's namespace.
func (r *rig) told(verb events.Verb) []events.Outcome {
	r.Helper()
	return slices.DeleteFunc(r.outcomes(), func(outcome events.Outcome) bool {
		return outcome.Workload.Namespace != r.namespace || outcome.Verb != verb
	})
}

// awaitTold waits until there are outcomes at so many workloads of the rig's namespace.
func (r *rig) awaitTold(verb events.Verb, count int) {
	r.Helper()
	r.eventually("there are "+strconv.Itoa(count)+" outcomes "+string(verb)+" in "+r.namespace, func(context.Context) bool {
		return len(r.told(verb)) >= count
	})
}

func TestATenantWhoseRolloutsNeverEndHoldsNoOther(t *testing.T) {
	t.Parallel()
	const slots, crowd = 4, 8
	shop, bank := tenants(t, "--max-rollouts", strconv.Itoa(slots))
	shop.secret("db", map[string]string{"password": "one"})
	shop.deploy(shop.reading("web", "db", 1, nil))
	bank.secret("shared", map[string]string{"password": "one"})
	for i := range crowd {
		bank.createStuck(bank.reading("stuck-"+strconv.Itoa(i), "shared", 1, map[string]string{
			"keyturn.dev/wave":    "-1000",
			"keyturn.dev/roll-on": "auto, " + strings.Repeat("configmap/"+strings.Repeat("*a", 100)+", ", 70) + "secret/shared",
			"example.com/huge":    strings.Repeat("x", 200<<10),
		}))
	}
	shop.start()
	bank.secret("shared", map[string]string{"password": "two"})
	bank.awaitTold(events.VerbStarted, 1)
	bank.awaitTold(events.VerbHeld, 1)
	for i := range 50 {
		name := "churned-" + strconv.Itoa(i)
		bank.configMap(name, map[string]string{"key": strings.Repeat("y", 100<<10)})
		testkit.Must(t, bank.client.CoreV1().ConfigMaps(bank.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}

	shop.secret("db", map[string]string{"password": "two"})
	shop.awaitTold(events.VerbCompleted, 1)
	if held := shop.told(events.VerbHeld); len(held) > 0 {
		t.Errorf("the other tenant waited: %s", held[0].Message)
	}
	// Nothing has ended at the one that misbehaves: it was not waited for.
	if ended := len(bank.told(events.VerbCompleted)) + len(bank.told(events.VerbFailed)); ended > 0 {
		t.Errorf("%d rollouts have ended that never should", ended)
	}
	if started := len(bank.told(events.VerbStarted)); started >= slots {
		t.Errorf("%d of %d slots are taken by one tenant", started, slots)
	}
}

// grantStores writes the file of --store-access and returns the argument with it.
func grantStores(t *testing.T, grants string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "store-access.yaml")
	testkit.Must(t, os.WriteFile(file, []byte("grants:\n"+grants+"\n"), 0o600))
	return "--store-access=" + file
}

// shared is a path in a store that tenants share.
const shared = "openbao:secret/shared"

// naming is a Deployment whose pods are not seen to read what it rolls on.
func (r *rig) naming(name, rollOn, wave string) *appsv1.Deployment {
	return programs.NewDeployment(r.namespace, name, 1, map[string]string{"keyturn.dev/roll-on": rollOn, "keyturn.dev/wave": wave})
}

// rotateShared publishes the event of a watcher that has seen the shared path rotated.
func (r *rig) rotateShared() {
	r.Helper()
	const version = "1794796013000000000"
	change := events.Change{
		Cluster: "demo", Source: events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shared"}.Source(),
		Verb: events.VerbRotated, UID: "bao", ResourceVersion: version, ChangedAt: version, Time: time.Now().UTC(), Truncated: true,
		Fingerprint: "k00000000:" + strings.Repeat("2", 32), Store: &events.StoreState{Engine: events.EngineKV, Version: 2, Revision: "2"},
	}
	r.publish(r.message(change))
}

func TestATenantRollsOnNoSecretInAStoreThatItMayNotName(t *testing.T) {
	t.Parallel()
	granted := plane.Namespace(t)
	shop, bank := tenantsIn(t, granted, grantStores(t, "- {namespaces: ["+granted+"], store: bao, paths: [secret/shared]}"))
	shop.deploy(shop.naming("web", shared, "0"))
	for name, rollOn := range map[string]string{"exact": shared, "of-a-store": "openbao:bao:secret/shared", "pattern": "openbao:*"} {
		bank.deploy(bank.naming(name, rollOn, "0"))
	}
	shop.start()
	shop.rotateShared()
	shop.awaitTold(events.VerbCompleted, 1)
	bank.eventually("each has an Event that says that it may not", func(ctx context.Context) bool {
		list, err := bank.client.CoreV1().Events(bank.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=InvalidAnnotation"})
		testkit.Must(t, err)
		return len(list.Items) == 3
	})
	for _, outcome := range shop.outcomes() {
		if outcome.Workload.Namespace == bank.namespace {
			t.Errorf("%s is told of a path that it may not name: %s", outcome.Workload, outcome.Reason)
		}
	}
}

// deployOnce creates a Deployment whose pods are available, and whose next ones cannot be made: their account is gone by then. Its controller gives up
// after ten seconds.
func (r *rig) deployOnce(deployment *appsv1.Deployment) {
	r.Helper()
	accounts, name := r.client.CoreV1().ServiceAccounts(r.namespace), deployment.Name
	if _, err := accounts.Create(r.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	deployment.Spec.ProgressDeadlineSeconds = new(int32(10))
	deployment.Spec.Template.Spec.ServiceAccountName = name
	r.deploy(deployment)
	testkit.Must(r, accounts.Delete(r.Context(), name, metav1.DeleteOptions{}))
}

func TestATenantHoldsNoOtherThroughASecretInAStore(t *testing.T) {
	t.Parallel()
	shop, bank := tenants(t, grantStores(t, `- {namespaces: ["*"], store: bao, paths: ["*"]}`))
	shop.deploy(shop.naming("web", shared, "0"))
	bank.deployOnce(bank.naming("first", shared, "-1000"))
	bank.deploy(bank.naming("second", shared, "0"))
	shop.start()
	shop.rotateShared()
	if failed := bank.outcomeOf("first", events.VerbFailed); failed.Reason != "deadline-exceeded" {
		t.Errorf("reason of the failure: got %s, want deadline-exceeded", failed.Reason)
	}
	bank.eventually("the second of the tenant is held because the first failed", func(context.Context) bool {
		return slices.ContainsFunc(bank.told(events.VerbHeld), func(outcome events.Outcome) bool { return outcome.Reason == "peer-failed" })
	})
	shop.awaitTold(events.VerbCompleted, 1)
	if held := shop.told(events.VerbHeld); len(held) > 0 {
		t.Errorf("the other tenant waited: %s", held[0].Message)
	}
}
