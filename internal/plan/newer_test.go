package plan

import (
	"strconv"
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
		w := workloadOf(t, "auto", password, func(w *workload.Workload) {
			w.ID.Kind, w.Created = "job", written.Add(later)
		})
		if got := decisionOf(w, changeOf(nil), nil).Reason; got != want {
			t.Errorf("%s after the change: got %s, want %s", later, got, want)
		}
	}
}

// A version of a secret in a store can become the current one again long after it was written.
func TestWhatAStoreHasAgainIsAsOldAsItsRestore(t *testing.T) {
	restored := written.Add(time.Hour)
	tests := []struct {
		name            string
		created         time.Time
		resourceVersion string
		want            Reason
	}{
		{"the workload was created before the store was restored", written.Add(time.Minute), nanosecondsOf(restored), Changed},
		{"the workload was created after that", restored.Add(clockMargin + time.Second), nanosecondsOf(restored), PodsNewer},
		{"the version is new, and the workload was created after it", written.Add(time.Minute), nanosecondsOf(written), PodsNewer},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, "auto", workload.Reference{Kind: events.KindOpenBao, Name: "secret/db"}, func(w *workload.Workload) {
				w.Created = test.created
			})
			now := changeOf(func(c *events.Change) {
				c.Source, c.Keys, c.Truncated = events.Source{Kind: events.KindOpenBao, Name: "bao/root/secret/db"}, nil, true
				c.ResourceVersion, c.ChangedAt = test.resourceVersion, test.resourceVersion
			})
			if got := decisionOf(w, now, nil).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func nanosecondsOf(at time.Time) string { return strconv.FormatInt(at.UnixNano(), 10) }

// The time of a field manager's write is known to the second. It is asked for only where the template was not seen being written.
func TestWhatReloaderHasRolledIsNotRolledAgain(t *testing.T) {
	whole := workload.Reference{Kind: events.KindSecret, Name: "db"}
	tests := []struct {
		name     string
		version  string
		reloaded time.Time
		pods     int32
		now      events.Change
		want     Reason
	}{
		{"after the change", "", written.Add(time.Second), 0, changeOf(nil), PodsNewer},
		{"before the change", "", written.Add(-time.Second), 0, changeOf(nil), Changed},
		{"after a change of which nobody knows when it was written", "", written, 0, changeOf(func(c *events.Change) {
			c.WrittenAt = time.Time{}
		}), Changed},
		{"at another time than the template, which is older, was seen being written", "50", written.Add(time.Hour), 0, changeOf(nil), Changed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, "auto", whole, func(w *workload.Workload) {
				w.TemplateVersion, w.Reloaded, w.Progress.Pods = test.version, test.reloaded, test.pods
			})
			if got := decisionOf(w, test.now, nil).Reason; got != test.want {
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

// Reloader's marker names the source of its newest roll.
func TestARollOfReloaderForAnotherSourceInTheSameSecondIsNotOneForTheChange(t *testing.T) {
	kinds := workload.BuiltIn()
	tests := []struct {
		name, marker string
		reloaded     time.Time
		want         Reason
	}{
		{"for the source", `{"type":"SECRET","name":"db"}`, written, PodsNewer},
		{"for another source", `{"type":"SECRET","name":"mail"}`, written, Changed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			at := metav1.NewTime(test.reloaded)
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "w", ResourceVersion: "50", CreationTimestamp: metav1.NewTime(written.Add(-time.Hour)),
				Annotations:   map[string]string{workload.AnnotationRollOn: "secret/db"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: workload.ReloaderManager, Time: &at}},
			}}
			deployment.Spec.Replicas = new(int32(0))
			deployment.Spec.Template.Annotations = map[string]string{"reloader.stakater.com/last-reloaded-from": test.marker}
			w, ok := workload.Read(kinds[0], deployment, workload.Reading{Reloader: true})
			if !ok {
				t.Fatal("no workload")
			}
			if got := decisionOf(w, changeOf(nil), nil).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
