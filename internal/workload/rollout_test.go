package workload

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/tests/testkit"
)

// rolloutOf is a Rollout as the API server serves it.
func rolloutOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	testkit.Must(t, json.Unmarshal([]byte(text), &object.Object))
	return object
}

// readRollout reads a Rollout with a spec and a status, in generation 2.
func readRollout(t *testing.T, spec, status string) *Workload {
	t.Helper()
	const meta = `{"name":"web","namespace":"shop","uid":"u","resourceVersion":"7","generation":2}`
	return readAs(t, ArgoRollout(), rolloutOf(t, `{"metadata":`+meta+`,"spec":`+spec+`,"status":`+status+`}`), Reading{})
}

func TestTheProgressOfARolloutIsWhatItsPhaseSays(t *testing.T) {
	const three, steps = `{"replicas":3}`, `{"replicas":3,"strategy":{"canary":{"steps":[{"setWeight":20},{"analysis":{}},{"experiment":{}}]}}}`
	tests := []struct {
		name, spec, status string
		want               Progress
	}{
		{"it is done", three, `{"observedGeneration":"2","phase":"Healthy","replicas":3,"updatedReplicas":3,"availableReplicas":3}`, Progress{State: Complete, Pods: 3, Done: 6}},
		{
			"old pods are left", three,
			`{"observedGeneration":"2","phase":"Progressing","message":"old replicas are pending termination","replicas":4,"updatedReplicas":3,"availableReplicas":4}`,
			Progress{State: Progressing, Message: "old replicas are pending termination", Pods: 3, Done: 6},
		},
		{
			"it is aborted", three, `{"observedGeneration":"2","phase":"Degraded","abort":true,"message":"RolloutAborted: Rollout aborted update to revision 2"}`,
			Progress{State: Failed, Aborted: true, Message: "RolloutAborted: Rollout aborted update to revision 2", Pods: 3},
		},
		{
			"a step is a pause", steps, `{"observedGeneration":"2","phase":"Paused","message":"CanaryPauseStep","currentStepIndex":1}`,
			Progress{State: Waiting, Partial: true, Message: "the Rollout is paused: CanaryPauseStep", Pods: 3},
		},
		{
			"a step is an analysis", steps, `{"observedGeneration":"2","phase":"Progressing","currentStepIndex":1}`,
			Progress{State: Waiting, Partial: true, Message: "step 2 of the canary is an analysis or an experiment", Pods: 3},
		},
		{
			"a step replaces pods", steps, `{"observedGeneration":"2","phase":"Progressing","message":"more","currentStepIndex":0}`,
			Progress{State: Progressing, Message: "more", Pods: 3},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := readRollout(t, test.spec, test.status).Progress; got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestARestartThatIsLeftIsNoPartOfTheRolloutOfATemplate(t *testing.T) {
	const (
		canary    = `{"replicas":3,"restartAt":"2100-01-01T00:00:00Z"}`
		blueGreen = `{"replicas":3,"restartAt":"2100-01-01T00:00:00Z","strategy":{"blueGreen":{}}}`
	)
	tests := []struct {
		name, spec, counts string
		want               State
	}{
		{"all pods are new", canary, `"stableRS":"b","currentPodHash":"b","replicas":3,"updatedReplicas":3,"availableReplicas":3`, Complete},
		{"not all steps are taken", canary, `"stableRS":"a","currentPodHash":"b","replicas":3,"updatedReplicas":3,"availableReplicas":3`, Progressing},
		{"old pods are kept", blueGreen, `"stableRS":"b","currentPodHash":"b","replicas":6,"updatedReplicas":3,"availableReplicas":3`, Complete},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := readRollout(t, test.spec, `{"observedGeneration":"2","phase":"Progressing",`+test.counts+`}`).Progress
			if p.State != test.want || p.Waits(time.Time{}) {
				t.Errorf("got %+v, want state %d, and no waiting", p, test.want)
			}
		})
	}
}

func TestARollFailsIfTheRolloutWasAbortedSince(t *testing.T) {
	const template = `{"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a"}]}}}`
	tests := []struct {
		name, status string
		aborted      bool
		want         string
	}{
		{"it was never aborted", `{"phase":"Healthy"}`, false, `{"op":"test","path":"/status/abort","value":null}`},
		{"the abort was lifted", `{"abort":false}`, false, `{"op":"test","path":"/status/abort","value":false}`},
		{"it is aborted", `{"abort":true}`, true, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := readRollout(t, template, test.status)
			patch := patchFor(t, ArgoRollout(), w, Write{Rolls: true})
			if w.Aborted != test.aborted {
				t.Errorf("aborted: got %t, want %t", w.Aborted, test.aborted)
			}
			if !test.aborted && strings.Contains(string(patch.Body), `{"op":"test","path":"/status/abort"`) != (test.want != "") ||
				!strings.Contains(string(patch.Body), test.want) {
				t.Errorf("the patch has not %s:\n%s", test.want, patch.Body)
			}
		})
	}
}

// Whoever may write a Rollout controls its content, as far as the schema of the CRD allows.
func FuzzReadRollout(f *testing.F) {
	f.Add(`{"metadata":{"name":"web","annotations":{"keyturn.dev/roll-on":"auto"}},"spec":{"template":{"spec":{"containers":[{"name":"a"}]}}}}`)
	f.Add(`{"spec":{"replicas":-1,"strategy":{"canary":{"steps":[{"analysis":{}}]}}},"status":{"observedGeneration":"0","currentStepIndex":-1}}`)
	f.Add(`{"spec":{"template":5},"status":{"currentStepIndex":99,"replicas":9223372036854775807}}`)
	f.Add(`{"metadata":{"annotations":{"reloader.stakater.com/rollout-strategy":"restart"}},"spec":{"restartAt":"9999-12-31T23:59:59Z"},"status":{"restartedAt":"x"}}`)
	f.Add(`{"spec":{"workloadRef":{"kind":"Deployment","name":""}},"status":{"workloadObservedGeneration":"-1"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		object := &unstructured.Unstructured{}
		if json.Unmarshal([]byte(text), &object.Object) != nil {
			t.Skip("the API server gives objects")
		}
		w, ok := Read(ArgoRollout(), object, Reading{All: true})
		if !ok {
			return
		}
		if _, err := ArgoRollout().Patch(w, Write{Rolls: true}); err != nil {
			t.Error(err)
		}
	})
}
