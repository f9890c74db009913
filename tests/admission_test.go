package tests

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// denying is an admission policy that denies every update of DEPLOYMENTS in a namespace.
const denying = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: POLICY}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [UPDATE], resourceNames: [DEPLOYMENTS]}]
  validations: [{expression: "false", message: this workload is frozen}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: POLICY}
spec: {policyName: POLICY, validationActions: [Deny]}
`

// denyUpdates has admission deny every update of some Deployments, until the test ends or allow is called. It returns when
// the API server does so.
func (r *rig) denyUpdates(deployments ...string) (allow func()) {
	r.Helper()
	name := r.namespace + "-" + deployments[0]
	values := strings.NewReplacer("POLICY", name, "NAMESPACE", r.namespace, "DEPLOYMENTS", strings.Join(deployments, ", "))
	testkit.Must(r, plane.ApplyYAML(r.Context(), strings.NewReader(values.Replace(denying))))
	policies := r.client.AdmissionregistrationV1()
	remove := func() {
		ctx := context.WithoutCancel(r.Context())
		// An error is that it is gone already.
		_ = policies.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = policies.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	}
	r.Cleanup(remove)
	denied := func(ctx context.Context) bool {
		_, err := r.client.AppsV1().Deployments(r.namespace).Patch(ctx, deployments[0], types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"test":"denied?"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "this workload is frozen")
	}
	r.eventually("the admission policy is in force", denied)
	return func() {
		remove()
		r.eventually("the admission policy is in force no more", func(ctx context.Context) bool { return !denied(ctx) })
	}
}

func TestAWorkloadThatCannotBePatchedCostsOnlyItself(t *testing.T) {
	t.Parallel() // most of it is waiting between tries
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	for _, name := range []string{"one", "two", "frozen", "doomed"} {
		r.deploy(r.reading(name, "db", 1, nil))
	}
	allow := r.denyUpdates("frozen", "doomed")
	r.start()
	before := r.generations()
	rolledOnce := func(name string) {
		t.Helper()
		if got, want := r.generations()[name], before[name]+1; got != want {
			t.Errorf("generation of %s: got %d, want %d", name, got, want)
		}
	}

	r.secret("db", map[string]string{"password": "two"})
	// The tries go on for half a minute.
	r.eventually("a patch of the one to delete is refused", func(context.Context) bool {
		for line := range strings.Lines(r.actuator.Output()) {
			if strings.Contains(line, "patch failed; retrying") && strings.Contains(line, "deployment/doomed") {
				return true
			}
		}
		return false
	})
	testkit.Must(t, r.client.AppsV1().Deployments(r.namespace).Delete(t.Context(), "doomed", metav1.DeleteOptions{}))
	if gone := r.outcomeOf("doomed", events.VerbSkipped); gone.Reason != "workload-gone" {
		t.Errorf("outcome of the deleted one: got %s, want workload-gone", gone.Reason)
	}
	failed := r.outcomeOf("frozen", events.VerbFailed)
	if failed.Reason != "patch-denied" || !strings.Contains(failed.Message, "this workload is frozen") ||
		len(failed.Sources) != 1 || failed.Sources[0].Source != "secret/db" {
		t.Errorf("outcome: got %s, %q of %v, want patch-denied with what admission says, of secret/db", failed.Reason, failed.Message, failed.Sources)
	}
	for _, name := range []string{"one", "two"} {
		if rolled := r.outcomeOf(name, events.VerbCompleted).StartedAt; !rolled.Before(failed.Time) {
			t.Errorf("%s was rolled at %s, after the other was given up at %s, want at once", name, rolled, failed.Time)
		}
	}
	r.eventually("a Kubernetes Event says so", func(context.Context) bool {
		list := r.kubeEvents("frozen", "RolloutFailed")
		return len(list) == 1 && strings.HasPrefix(list[0].Message, "patch-denied: ") && strings.Contains(list[0].Message, "this workload is frozen")
	})
	if explained := r.explain("deployment/frozen"); !strings.Contains(explained, "It was to be rolled for secret/db: failed at TIME (patch-denied)") {
		t.Errorf("explain: got\n%s", explained)
	}
	rolledOnce("one")
	rolledOnce("two")
	if got := r.generations()["frozen"]; got != before["frozen"] {
		t.Errorf("generation of the frozen one: got %d, want %d as before", got, before["frozen"])
	}

	// Once patches are allowed again, it is rolled by itself. The next attempt comes at once if the workload changes.
	allow()
	r.annotateDeployment("frozen", "example.com/exempt", "true")
	r.outcomeOf("frozen", events.VerbCompleted)
	r.quiet()
	if letters := r.deadLetters(); len(letters) > 0 {
		t.Errorf("dead letters: got %v, want none", letters)
	}
	for _, name := range []string{"one", "two", "frozen"} {
		rolledOnce(name)
	}
}
