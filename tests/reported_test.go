package tests

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testkit"
)

// createDeployment creates a Deployment, and does not wait for its pods.
func (r *rig) createDeployment(deployment *appsv1.Deployment) {
	r.Helper()
	if _, err := r.client.AppsV1().Deployments(r.namespace).Create(r.Context(), deployment, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// hasGivenUp reports whether the controller of a Deployment has given up its rollout.
func hasGivenUp(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
	})
}

// Their node pool is gone, and their controllers have given up before the password changes.
func TestFiveThatWereBrokenBeforeHoldUpNoneOfFiftyFive(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const many, broken = 60, 5
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	want := tally{}
	for i := range many {
		name := fmt.Sprintf("app-%02d", i)
		deployment := r.reading(name, "db", 1, nil)
		if i < broken {
			// With less than a second left, the controller would ask again by the queue of what has failed: ten a second, of all Deployments together.
			deployment.Spec.ProgressDeadlineSeconds = new(int32(3))
			deployment.Spec.Template.Spec.NodeSelector = map[string]string{"example.com/nowhere": "true"}
		} else {
			deployment.Spec.MinReadySeconds = 1
			want["deployment/"+name] = 1
		}
		r.createDeployment(deployment)
	}
	for i := range many {
		name := fmt.Sprintf("app-%02d", i)
		r.eventually(name+" is healthy, or was given up", func(context.Context) bool {
			d := r.deployment(name)
			return complete(d) || i < broken && hasGivenUp(d)
		})
	}
	r.start()
	before := r.tally()
	r.secret("db", map[string]string{"password": "two"})
	r.eventually("all that are healthy have rolled", func(context.Context) bool { return r.seen().since(before).covers(want) })
	r.awaitTold(events.VerbCompleted, many-broken)
	for workload, rolls := range r.tally().since(before) {
		if rolls != 1 {
			t.Errorf("%s has rolled %d times, want once", workload, rolls)
		}
	}
	for _, held := range r.told(events.VerbHeld) {
		if held.Reason == "peer-failed" {
			t.Errorf("%s is held: %s", held.Workload, held.Message)
		}
	}
}

// freeze has admission refuse every change of the pod template of a Deployment, until the returned function is called or the test ends.
func (r *rig) freeze(deployment string) (thaw func()) {
	r.Helper()
	policies, name := r.client.AdmissionregistrationV1(), r.namespace+"-freeze"
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": r.namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				}}},
			},
			MatchConditions: []admissionv1.MatchCondition{{Name: "template", Expression: "object.spec.template != oldObject.spec.template"}},
			Validations:     []admissionv1.Validation{{Expression: "false", Message: "change freeze until Monday 08:00"}},
		},
	}
	if _, err := policies.ValidatingAdmissionPolicies().Create(r.Context(), policy, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(r.Context(), binding, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	remove := func() {
		ctx := context.WithoutCancel(r.Context())
		// An error is that it is gone already.
		_ = policies.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = policies.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	}
	r.Cleanup(remove)
	r.eventually("changes of the pod template are refused", func(ctx context.Context) bool {
		_, err := r.client.AppsV1().Deployments(r.namespace).Patch(ctx, deployment, types.MergePatchType,
			[]byte(`{"spec":{"template":{"metadata":{"annotations":{"test":"refused?"}}}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "change freeze")
	})
	return remove
}

func TestARollThatIsRefusedForAWhileComesByItself(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.start()
	r.awaitRecords()
	thaw := r.freeze("web")
	before := r.tally()
	r.secret("db", map[string]string{"password": "two"})
	r.eventually("the roll is refused", func(context.Context) bool {
		return strings.Contains(r.actuator.Output(), "change freeze until Monday 08:00")
	})
	if got := r.tally().since(before); len(got) > 0 {
		t.Errorf("during the freeze these have rolled: %v", got)
	}
	thaw()
	r.outcomeOf("web", events.VerbCompleted)
	r.hasRolledForTheLast("deployment/web", events.Source{Kind: events.KindSecret, Name: "db"})
	if got := r.tally().since(before)["deployment/web"]; got != 1 {
		t.Errorf("after the freeze it has rolled %d times, want once", got)
	}
}

// The new pods take their time, and the old ones still run. Then somebody corrects the password, or puts the earlier one back. That rolls, too: pods
// that started in between may have read the wrong one.
func TestWhatAPersonUndoesIsLeftAloneUntilTheNextChange(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	next := map[string]string{"corrected": "better", "put-back": "good"}
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	for name := range next {
		r.secret(name, map[string]string{"password": "good"})
		deployment := r.reading(name, name, 3, nil)
		deployment.Spec.MinReadySeconds = 6
		r.createDeployment(deployment)
	}
	for name := range next {
		r.eventually(name+" is healthy", func(context.Context) bool { return complete(r.deployment(name)) })
	}
	r.placeFence()
	r.start()
	r.awaitRecords()
	// The pod template of each is written by the roll, and by who undoes it.
	r.rolls("a wrong password", tally{"deployment/corrected": 2, "deployment/put-back": 2}, func() {
		for name := range next {
			r.secret(name, map[string]string{"password": "wrong"})
			r.outcomeOf(name, events.VerbStarted)
			// kubectl goes back from one ReplicaSet to another, and the controller may not have made that of the roll yet.
			r.eventually("the controller of "+name+" knows the roll", func(context.Context) bool {
				d := r.deployment(name)
				return d.Status.ObservedGeneration == d.Generation
			})
			r.run(tool(t, build.Kubectl), "rollout", "undo", "deployment/"+name)
			if told := r.outcomeOf(name, events.VerbSkipped); told.Reason != "undone" {
				t.Errorf("it is told that the rollout of %s is %s: %s", name, told.Reason, told.Message)
			}
		}
	})
	for name := range next {
		// A roll is repeated, after a minute, only if this counts it.
		if count := r.workload("deployment/" + name).Annotations["keyturn.dev/reverted"]; count != "" {
			t.Errorf("%s is to be rolled again: %s", name, count)
		}
	}
	r.rolls("the next change", once("deployment/corrected", "deployment/put-back"), func() {
		for name, password := range next {
			r.secret(name, map[string]string{"password": password})
		}
	})
	for name := range next {
		r.hasRolledForTheLast("deployment/"+name, events.Source{Kind: events.KindSecret, Name: name})
	}
}

// noisy are the arguments for what changes every quarter of a second: the debounce window is a little shorter, and the pace goes with it.
func noisy() programs.Options { return programs.Options{ActuatorArgs: []string{"--settle", "200ms"}} }

const beat = 250 * time.Millisecond

// inTurn does things one after the other, a beat apart.
func inTurn(times int, do func(i int)) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for i := range times {
		do(i)
		<-ticker.C
	}
}

// An operator syncs one lease after the other.
func TestTwelveSecretsOfOneWorkloadAreAFewRolls(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const count, most = 12, 7
	r := newRig(t, noisy())
	deployment := programs.NewDeployment(r.namespace, "web", 2, map[string]string{"keyturn.dev/roll-on": "auto"})
	var sources []events.Source
	for i := range count {
		name := fmt.Sprintf("s%02d", i)
		sources = append(sources, events.Source{Kind: events.KindSecret, Name: name})
		r.secret(name, map[string]string{"password": "one"})
		programs.ReadSecret(&deployment.Spec.Template, name)
	}
	r.deploy(deployment)
	r.start()
	r.awaitRecords()
	before := r.tally()
	inTurn(count, func(i int) { r.secret(sources[i].Name, map[string]string{"password": "two"}) })
	for _, source := range sources {
		r.awaitRolledFor("deployment/web", source)
	}
	if got := r.tally().since(before)["deployment/web"]; got > most {
		t.Errorf("it has rolled %d times for %d Secrets, want %d times at most", got, count, most)
	}
}

// awaitRolledFor waits until a workload that reads all of a source has the record of its last content.
func (r *rig) awaitRolledFor(workload string, source events.Source) {
	r.Helper()
	r.eventually(workload+" has what "+source.String()+" has", func(context.Context) bool {
		last := r.lastChange(source)
		return last.ResourceVersion == r.source(source.Kind, source.Name).GetResourceVersion() &&
			strings.Contains(r.workload(workload).Annotations["keyturn.dev/rolled"], last.Fingerprint+"@")
	})
}

// A controller writes two keys of a Secret, and another one all of them again. Then both write a new password.
func TestTwoWhoWriteOneSecretDelayNoNewPassword(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const most = 8
	r := newRig(t, noisy())
	two := func(password string) map[string]string {
		return map[string]string{"user": "results", "password": password}
	}
	both := func(password string) {
		all := two(password)
		for _, key := range []string{"host", "port", "verifier", "dbname", "jdbc-uri"} {
			all[key] = key
		}
		all["uri"] = "postgres://results:" + password + "@db"
		inTurn(2, func(i int) { r.secret("db", []map[string]string{two(password), all}[i]) })
	}
	both("one")
	for name, key := range map[string]string{"password-alone": "password", "uri-alone": "uri"} {
		deployment := programs.NewDeployment(r.namespace, name, 1, map[string]string{"keyturn.dev/roll-on": "auto"})
		programs.ReadSecretKey(&deployment.Spec.Template, "db", key)
		r.deploy(deployment)
	}
	r.deploy(r.reading("everything", "db", 1, nil))
	r.start()
	r.awaitRecords()
	before := r.tally()
	for range 20 {
		both("one")
	}
	during := r.tally().since(before)
	if rolls := during["deployment/everything"]; rolls > most || len(during) > 1 {
		t.Errorf("while they write the same again and again, these have rolled: %v; want everything alone, %d times at most", during, most)
	}
	before = r.tally()
	both("two")
	for _, name := range []string{"password-alone", "uri-alone", "everything"} {
		r.eventually(name+" has rolled for the new password", func(context.Context) bool { return r.seen().since(before)["deployment/"+name] > 0 })
	}
	r.awaitRolledFor("deployment/everything", events.Source{Kind: events.KindSecret, Name: "db"})
	after := r.tally().since(before)
	for _, name := range []string{"password-alone", "uri-alone"} {
		if rolls := after["deployment/"+name]; rolls != 1 {
			t.Errorf("%s has rolled %d times for the new password, want once", name, rolls)
		}
	}
}

// The Vault Secrets Operator reads a static role again and again. What it knows of the next rotation differs each time, also in _raw, which has the
// whole answer.
func TestAStaticRoleThatIsReadAgainRollsNobodyUntilItIsRotated(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	answer := func(password, rotated string, ttl int) map[string]string {
		return map[string]string{
			"username": "orders", "password": password, "rotation_period": "86400", "last_vault_rotation": rotated, "ttl": strconv.Itoa(ttl),
			"_raw": fmt.Sprintf(`{"last_vault_rotation":%q,"password":%q,"ttl":%d,"username":"orders"}`, rotated, password, ttl),
		}
	}
	const first, second = "2026-11-27T06:00:00Z", "2026-11-28T06:00:00Z"
	r.secret("db", answer("one", first, 86395))
	r.label(events.KindSecret, "db", "app.kubernetes.io/managed-by", "hashicorp-vso")
	all := readsAll(events.KindSecret, "db")
	want := tally{}
	for _, w := range []workload{
		{name: "everything", on: "auto", read: all},
		{name: "one-key", on: "auto", read: readsKey(events.KindSecret, "db", "password")},
		{name: "files", on: "auto", read: mounts(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}, "/creds", "")},
		{name: "listed", on: "secret/db#password, secret/db#username", read: all},
		{name: "excludes", on: "auto, !secret/db#ttl, !secret/db#_raw, !secret/db#last_vault_rotation", read: all},
	} {
		w.kind = "deployment"
		r.create(w)
		want[w.String()] = 1
	}
	r.placeFence()
	r.start()
	r.awaitRecords()
	sync := func(content map[string]string) {
		r.patch(events.KindSecret, "db", map[string]any{"stringData": content})
	}
	r.rollsNothing("it is read again", func() {
		for _, ttl := range []int{86330, 86270, 86210, 86150, 86090} {
			sync(answer("one", first, ttl))
		}
	})
	r.rolls("the password is rotated", want, func() { sync(answer("two", second, 86400)) })
	r.rollsNothing("it is read again after that", func() { sync(answer("two", second, 86340)) })
}
