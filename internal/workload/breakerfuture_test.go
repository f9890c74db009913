package workload

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// It was written by a leader whose clock was ahead, or manually.
func TestRollsOfTheFutureEndWithTheAnnotation(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	at := func(version, text string, written time.Time) *Workload {
		d := webDeployment(version, map[string]string{annotationRolls: text})
		d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: written}}}
		w, _ := Read(deployments, d, Reading{MaxRollsPerHour: 3})
		return w
	}
	w := at("50", "1 since 2026-03-14T19:09:26Z", now)
	for i := range 10 {
		rolled := now.Add(time.Duration(i) * time.Minute)
		if _, _, is := w.TooOften(rolled); is {
			return
		}
		w = at("5"+string(rune('1'+i)), w.breaker.rolls.and(rolled).String(), rolled).After(w, true)
	}
	t.Error("ten rolls in ten minutes, with a limit of three")
}
