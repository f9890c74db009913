package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestTheGateOfAWorkloadHasTheFirstOfTheReasonsThatPeopleChose(t *testing.T) {
	const (
		hold   = events.AnnotationHold
		now    = workload.AnnotationRollNow
		window = workload.AnnotationWindow
		least  = workload.AnnotationMinInterval
		rolled = "keyturn.dev/rolled-at"
		most   = workload.AnnotationMaxRollsPerHour
		rolls  = "keyturn.dev/rolls"
		pause  = "deployment.reloader.stakater.com/pause-period"
		paused = "deployment.reloader.stakater.com/paused-at"
	)
	at := func(clock string) time.Time {
		read, err := time.Parse(time.DateTime, "2026-03-14 "+clock)
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	tests := []struct {
		name  string
		on    map[string]string
		state func(*workload.Workload)
		since time.Time
		want  Gate
		// opens says that the gate ends at the workload's own moment in the next window.
		opens bool
	}{
		{name: "nothing is chosen"},
		{name: "it is on hold", on: map[string]string{hold: "tofu apply"}, want: Gate{Reason: OnHold, Said: "tofu apply"}},
		{name: "it is to roll whatever holds it", on: map[string]string{hold: "tofu apply", now: "1"}},
		{
			name: "the hold comes before the window", on: map[string]string{hold: "tofu apply", window: "at night"},
			want: Gate{Reason: OnHold, Said: "tofu apply"},
		},
		{
			name: "its window is not valid", on: map[string]string{window: "at night"},
			want: Gate{Reason: WindowClosed, Said: workload.AnnotationWindow + " is not valid"},
		},
		{
			name: "its window is closed, which comes before the interval",
			on:   map[string]string{window: "0 16 * * * for 3h", least: "1h", rolled: "2026-03-14T15:00:00Z"},
			want: Gate{Reason: WindowClosed, Said: "0 16 * * * for 3h"}, opens: true,
		},
		{
			name: "it was rolled recently, which comes before its own moment in the window",
			on:   map[string]string{window: "9 15 * * * for 3h", least: "1h", rolled: "2026-03-14T15:00:00Z"},
			want: Gate{Reason: RolledRecently, End: at("16:00:00")},
		},
		{
			name: "it was rolled too often", on: map[string]string{most: "2", rolls: "2 since 2026-03-14T15:00:00Z", pause: "30s"}, since: written,
			want: Gate{Reason: RolledTooOften, Said: "2 since 2026-03-14T15:00:00Z", End: at("16:00:00")},
		},
		{
			name: "its pause begins", on: map[string]string{pause: "30s"}, since: written,
			want: Gate{Reason: Pausing, End: at("15:09:56"), Begins: true},
		},
		{
			name: "no pause begins while someone has paused the Deployment itself", on: map[string]string{pause: "30s"}, since: written,
			state: func(w *workload.Workload) { w.Progress.State = workload.Waiting },
		},
		{name: "no pause begins while no change is known", on: map[string]string{pause: "30s"}},
		{
			name: "its pause has begun", on: map[string]string{pause: "30s", paused: "2026-03-14T15:09:00Z"}, since: written,
			want: Gate{Reason: Pausing, End: at("15:09:30")},
		},
		{
			name: "its pause has begun, and no change is known", on: map[string]string{pause: "30s", paused: "2026-03-14T15:09:00Z"},
			want: Gate{Reason: Pausing, End: at("15:09:30")},
		},
		{
			name: "its pause is over", on: map[string]string{pause: "30s", paused: "2026-03-14T15:08:56Z"}, since: at("15:08:57"),
		},
		{
			name: "its window is open, and its own moment has not come", on: map[string]string{window: "9 15 * * * for 3h"},
			want: Gate{Reason: WindowClosed, Said: "9 15 * * * for 3h", Soon: true}, opens: true,
		},
		{name: "its window has long been open", on: map[string]string{window: "0 12 * * * for 12h"}},
	}
	deployments, _ := workload.BuiltIn().Named("deployment")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, ok := workload.Read(deployments, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web", UID: "w", ResourceVersion: "50", Annotations: tt.on,
			}}, workload.Reading{Reloader: true})
			if !ok {
				t.Fatal("it is no Deployment")
			}
			w.Progress = workload.Progress{}
			if tt.state != nil {
				tt.state(w)
			}
			got := GateOf(w, tt.since, written)
			if tt.opens {
				tt.want.End, _ = w.Opening(written)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
