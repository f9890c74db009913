package plan

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// It may be made anew in the second in which its source changed, and an extra run is worse than clocks that differ.
func TestAJobThatWasCreatedInALaterSecondThanTheChangeHasIt(t *testing.T) {
	password := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}}
	for later, want := range map[time.Duration]Reason{0: Changed, time.Second: PodsNewer} {
		w := workloadOf(t, "auto", password, func(w *workload.Workload) { w.ID.Kind, w.Created = "job", written.Add(later) })
		if got := decisionOf(w, changeOf(nil), nil).Reason; got != want {
			t.Errorf("%s after the change: got %s, want %s", later, got, want)
		}
	}
}

// A version of a secret in a store can become the current one again long after it was written.
func TestWhatAStoreHasAgainIsAsOldAsItsRestore(t *testing.T) {
	restored := isInStore(storeTime(time.Hour))
	created := func(after time.Duration) func(*workload.Workload) {
		return func(w *workload.Workload) { w.Created = written.Add(after) }
	}
	testReasons(t, []decideTest{
		{name: "the workload is older than the restore", ref: storeDB, state: created(time.Minute), change: restored, want: Changed},
		{name: "the workload is newer", ref: storeDB, state: created(time.Hour + clockMargin + time.Second), change: restored, want: PodsNewer},
		{
			name: "the version is new, and the workload is newer", ref: storeDB, state: created(time.Minute), change: isInStore(storeTime(0)),
			want: PodsNewer,
		},
	})
}

// The time of a field manager's write is known to the second. It is asked for only where the template was not seen being written. Reloader's marker
// names the source of its newest roll.
func TestWhatReloaderHasRolledIsNotRolledAgain(t *testing.T) {
	tests := []struct {
		name, version, marker string
		after                 time.Duration
		change                func(*events.Change)
		want                  Reason
	}{
		{"after the change", "", "", time.Second, nil, PodsNewer},
		{"before the change", "", "", -time.Second, nil, Changed},
		{"after a change of which nobody knows when it was written", "", "", 0, func(c *events.Change) { c.WrittenAt = time.Time{} }, Changed},
		{"at another time than the template, which is older, was seen being written", "50", "", time.Hour, nil, Changed},
		{"in the same second, for the source", "", `{"type":"SECRET","name":"db"}`, 0, nil, PodsNewer},
		{"in the same second, for another source", "", `{"type":"SECRET","name":"mail"}`, 0, nil, Changed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			at := metav1.NewTime(written.Add(test.after))
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "w", ResourceVersion: "50", CreationTimestamp: metav1.NewTime(written.Add(-time.Hour)),
				Annotations:   map[string]string{workload.AnnotationRollOn: "secret/db"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: workload.ReloaderManager, Time: &at}},
			}}
			deployment.Spec.Replicas = new(int32(0))
			if test.marker != "" {
				deployment.Spec.Template.Annotations = map[string]string{"reloader.stakater.com/last-reloaded-from": test.marker}
			}
			w, ok := workload.Read(deployments, deployment, workload.Reading{Reloader: true})
			if !ok {
				t.Fatal("no workload")
			}
			w.TemplateVersion = test.version
			if got := decisionOf(w, changeOf(test.change), nil).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// A restart leaves the template as it is, so its version says nothing about it.
func TestARolloutThatReloaderHasRestartedIsNotRestartedAgain(t *testing.T) {
	for _, test := range []struct {
		name, strategy string
		reloaded       time.Time
		want           Reason
	}{
		{"after the change", "restart", written.Add(time.Second), PodsNewer},
		{"in the same second", "restart", written, PodsNewer},
		{"after the change, and a roll changes its template, which is older", "rollout", written.Add(time.Second), Changed},
	} {
		t.Run(test.name, func(t *testing.T) {
			rollout := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
				"spec": map[string]any{"replicas": int64(0), "template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}}},
			}}
			at := metav1.NewTime(test.reloaded)
			rollout.SetName("web")
			rollout.SetResourceVersion("110")
			rollout.SetAnnotations(map[string]string{workload.AnnotationRollOn: "secret/db", "reloader.stakater.com/rollout-strategy": test.strategy})
			rollout.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: workload.ReloaderManager, Time: &at}})
			w, ok := workload.Read(workload.ArgoRollout(), rollout, workload.Reading{Reloader: true})
			if !ok {
				t.Fatal("no workload")
			}
			w.TemplateVersion = "50"
			if got := decisionOf(w, changeOf(nil), nil).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
