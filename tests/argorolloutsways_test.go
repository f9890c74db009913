package tests

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/build"
)

func TestARolloutIsRestartedOnceWithoutANewPodTemplate(t *testing.T) {
	t.Parallel()
	n := startOutsideNATS(t)
	r := newArgoRig(t, programs.Options{NATSURL: n.URL()})
	startArgoRollouts(t)
	r.secret("db", map[string]string{"password": "one"})
	r.placeFence()
	r.createRollout(argoRollout{
		name: "web", secret: "db", annotations: `{keyturn.dev/roll-on: auto, reloader.stakater.com/rollout-strategy: restart}`,
	})
	r.awaitPhase("web", "Healthy")
	before := r.pods("web")
	r.start()
	r.secret("db", map[string]string{"password": "two"})
	r.eventually("the Rollout is to be restarted", func(context.Context) bool { return r.field("web", "spec", "restartAt") != "" })
	// The next one finds the roll on the Rollout, and takes it up.
	r.actuator.Kill()
	at := r.field("web", "spec", "restartAt")
	r.startActuator()
	completed := r.outcomeOf("web", events.VerbCompleted)
	if revision := r.field("web", "metadata", "annotations", "keyturn.dev/revision"); completed.Revision != revision || revision == "" {
		t.Errorf("revision: got %q on the Rollout, want that of the outcome, %q", revision, completed.Revision)
	}
	if done := r.field("web", "status", "restartedAt"); done != at {
		t.Errorf("restarted at %s when it was completed, want %s", done, at)
	}
	after := r.pods("web")
	if len(after) != 2 || slices.ContainsFunc(after, func(uid string) bool { return slices.Contains(before, uid) }) {
		t.Errorf("pods: got %v, want two others than %v", after, before)
	}
	r.passFence()
	if again := r.field("web", "spec", "restartAt"); again != at {
		t.Errorf("it was to be restarted at %s, and again at %s", at, again)
	}
	if sets := r.replicaSets("web"); sets != 1 || r.templateRevision("web") != "" {
		t.Errorf("ReplicaSets: got %d, with revision %q on the pod template, want one without any", sets, r.templateRevision("web"))
	}

	// A change that comes right after a restart is later than that.
	r.secret("db", map[string]string{"password": "three"})
	r.eventually("it is restarted for the next change", func(context.Context) bool {
		next := r.field("web", "spec", "restartAt")
		return next > at && r.field("web", "status", "restartedAt") == next
	})
}

func TestARestartIsRightWhateverTheClockOfTheWatcherSays(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t, programs.Options{})
	startArgoRollouts(t)
	tests := []struct {
		name  string
		ahead time.Duration
	}{
		{"ahead", 10 * time.Minute},
		{"behind", -10 * time.Minute},
	}
	for _, test := range tests {
		r.secret(test.name, map[string]string{"password": "one"})
		r.createRollout(argoRollout{
			name: test.name, secret: test.name, annotations: `{keyturn.dev/roll-on: auto, reloader.stakater.com/rollout-strategy: restart}`,
		})
	}
	for _, test := range tests {
		r.awaitPhase(test.name, "Healthy")
	}
	r.startActuator()
	for _, test := range tests {
		seen := r.changed(test.name, time.Now())
		seen.Verb, seen.Fingerprint, seen.Previous, seen.ChangedAt, seen.Changed = events.VerbObserved, seen.Previous, "", "", nil
		seen.Keys = map[string]events.Key{"password": {Fingerprint: seen.Fingerprint}}
		r.publish(r.message(seen))
		r.eventually("it has a record", func(context.Context) bool {
			return r.field(test.name, "metadata", "annotations", recordAnnotation) != ""
		})
	}
	for _, test := range tests {
		r.sub("a clock that is "+test.name, func(sub *rig) {
			in := &argoRig{sub, r.custom}
			before := in.pods(test.name)
			in.secret(test.name, map[string]string{"password": "two"})
			in.publish(in.message(in.changed(test.name, time.Now().Add(test.ahead))))
			in.outcomeOf(test.name, events.VerbCompleted)
			after := in.pods(test.name)
			if len(after) != 2 || slices.ContainsFunc(after, func(uid string) bool { return slices.Contains(before, uid) }) {
				in.Errorf("pods: got %v, want two others than %v", after, before)
			}
		})
	}
}

// changed is the event of a Secret as it is, as a watcher publishes it whose clock shows a time.
func (r *argoRig) changed(secret string, now time.Time) events.Change {
	r.Helper()
	object, err := r.client.CoreV1().Secrets(r.namespace).Get(r.Context(), secret, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	change := r.forge(secret)
	change.UID, change.ResourceVersion, change.ChangedAt = string(object.UID), object.ResourceVersion, object.ResourceVersion
	change.Keys["password"] = events.Key{Fingerprint: change.Fingerprint, ChangedAt: object.ResourceVersion}
	change.Time = now.UTC()
	for _, entry := range object.ManagedFields {
		change.WrittenAt = entry.Time.UTC()
	}
	return change
}

// pods returns the UIDs of the pods of a Rollout that are not on their way out.
func (r *argoRig) pods(name string) []string {
	r.Helper()
	list, err := r.client.CoreV1().Pods(r.namespace).List(r.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		r.Fatal(err)
	}
	var uids []string
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			uids = append(uids, string(pod.UID))
		}
	}
	return uids
}

func TestTheDeploymentWhosePodsARolloutRunsIsRolledOnceAndFollowedThere(t *testing.T) {
	t.Parallel()
	r := newArgoRig(t, programs.Options{})
	startArgoRollouts(t)
	r.secret("db", map[string]string{"password": "one"})
	r.placeFence()
	// As Argo Rollouts' documentation has it, the Deployment has no pods of its own.
	web := programs.NewDeployment(r.namespace, "web", 0, map[string]string{"keyturn.dev/roll-on": "secret/db"})
	programs.ReadSecret(&web.Spec.Template, "db")
	r.deploy(web)
	r.createRollout(argoRollout{
		name: "web", workloadRef: "web", steps: `[{setWeight: 50}, {pause: {}}]`, annotations: `{keyturn.dev/roll-on: auto}`,
	})
	r.awaitPhase("web", "Healthy")
	r.start()
	r.rolls("a change", once("deployment/web"), func() { r.secret("db", map[string]string{"password": "two"}) })
	r.awaitPhase("web", "Paused")
	if sets := r.replicaSets("web"); sets != 2 {
		t.Errorf("ReplicaSets: got %d, want the one of before and one new one", sets)
	}
	for _, outcome := range r.outcomes() {
		if outcome.Workload.Name == "web" && (outcome.Verb != events.VerbStarted || outcome.Workload.Kind != "deployment") {
			t.Errorf("while the canary pauses: got %s of %s (%s), want only that the Deployment was started", outcome.Verb, outcome.Workload, outcome.Reason)
		}
	}
	r.setStatus("web", `{"pauseConditions":null}`)
	r.outcomeOf("web", events.VerbCompleted)
	if phase := r.field("web", "status", "phase"); phase != "Healthy" {
		t.Errorf("phase of the Rollout when it was completed: got %s, want Healthy", phase)
	}
}

func TestARolloutCarriesWhatReloaderWrites(t *testing.T) {
	t.Parallel()
	if err := plane.ApplyKindsOf(t.Context(), build.ArgoRollouts, "Rollout"); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		strategy string
		written  func(template corev1.PodTemplateSpec) string
	}{
		{"annotations", func(template corev1.PodTemplateSpec) string {
			return template.Annotations["reloader.stakater.com/last-reloaded-from"]
		}},
		{"env-vars", func(template corev1.PodTemplateSpec) string {
			for _, variable := range template.Spec.Containers[0].Env {
				if variable.Name == "STAKATER_DB_SECRET" {
					return variable.Value
				}
			}
			return ""
		}},
	}
	for _, test := range tests {
		t.Run("with the strategy "+test.strategy, func(t *testing.T) {
			r := newArgoRig(t, programs.Options{ActuatorArgs: []string{"--reloader", "--reloader-strategy", test.strategy}})
			r.secret("db", map[string]string{"password": "one"})
			r.createRollout(argoRollout{name: "web", secret: "db", annotations: `{reloader.stakater.com/auto: "true"}`})
			r.start()
			last := ""
			for _, password := range []string{"two", "three"} {
				r.secret("db", map[string]string{"password": password})
				before := last
				r.eventually("the pod template says something else for the password "+password, func(context.Context) bool {
					last = test.written(r.podTemplate("web"))
					return last != before
				})
			}
		})
	}
}

// podTemplate returns the pod template of a Rollout.
func (r *argoRig) podTemplate(name string) corev1.PodTemplateSpec {
	r.Helper()
	object, _, err := unstructured.NestedMap(r.rollout(name).Object, "spec", "template")
	if err != nil {
		r.Fatal(err)
	}
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &template); err != nil {
		r.Fatal(err)
	}
	return template
}
