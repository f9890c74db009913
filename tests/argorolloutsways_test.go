package tests

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
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
