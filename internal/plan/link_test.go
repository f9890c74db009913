package plan

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// linkedAt is a Deployment that reads the key password of db, has a record, and was annotated by a write.
func linkedAt(t *testing.T, version string, at time.Time, record map[string]workload.RolledFor) *workload.Workload {
	t.Helper()
	deployments, _ := workload.BuiltIn().Named("deployment")
	states := make([]*workload.Workload, 2)
	for i, rollOn := range []string{"none", "auto"} {
		w, ok := workload.Read(deployments, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "w", ResourceVersion: version, Annotations: map[string]string{workload.AnnotationRollOn: rollOn},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: &metav1.Time{Time: at}}},
			},
			Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "app", Env: []corev1.EnvVar{{Name: "P", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "password",
				}}}},
			}}}}},
		}, workload.Reading{})
		if !ok {
			t.Fatal("no workload")
		}
		w.Rolled = record
		states[i] = w
	}
	states[1].LinkAfter(states[0], version)
	return states[1]
}

// It was opted out when the source had other content, and pods may have started with that.
func TestARecordOfBeforeTheLinkDoesNotTellWhatPodsHave(t *testing.T) {
	record := decisionOf(linkedAt(t, "99", written, nil), changeOf(nil), nil).Record
	record.Version = "90"
	w := linkedAt(t, "99", written, map[string]workload.RolledFor{"secret/db": record})
	if decision := decisionOf(w, changeOf(nil), nil); decision.Reason != Changed {
		t.Errorf("with a link: got %s, want %s", decision.Reason, Changed)
	}
	before := workloadOf(t, "auto", workload.Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}}, nil)
	before.Rolled = w.Rolled
	if decision := decisionOf(before, changeOf(nil), nil); decision.Reason != SameContent {
		t.Errorf("without a link: got %s, want %s", decision.Reason, SameContent)
	}
}

func TestOnlyAChangeThatWasWrittenAfterTheWishIsLaterThanThat(t *testing.T) {
	wanted := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		name   string
		wanted time.Time
		change func(*events.Change)
		want   bool
	}{
		{"written after it", wanted, func(c *events.Change) { c.WrittenAt = wanted.Add(time.Minute) }, true},
		{"written before it", wanted, func(c *events.Change) { c.WrittenAt = wanted.Add(-time.Minute) }, false},
		{"written at about the same time", wanted, func(c *events.Change) { c.WrittenAt = wanted.Add(clockMargin) }, false},
		{"written at a time that is not known", wanted, func(c *events.Change) { c.WrittenAt = time.Time{} }, false},
		{"the time of the wish is not known", time.Time{}, func(c *events.Change) { c.WrittenAt = wanted }, false},
		{"deleted after it", wanted, func(c *events.Change) {
			c.Verb, c.WrittenAt, c.Time = events.VerbDeleted, time.Time{}, wanted.Add(time.Minute)
		}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, "auto", workload.Reference{Kind: events.KindSecret, Name: "db"}, func(w *workload.Workload) { w.Edited = test.wanted })
			q := question{w: w, now: changeOf(test.change)}
			if got := q.isLaterThanWish(); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
