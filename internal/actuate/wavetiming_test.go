package actuate

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// TestAWaveWaitsForTheMomentOfALowerOneInAnOpenWindowAndForNoOtherTime advances the clock over the opening of a window. Of the two workloads, the
// one of the higher wave has the earlier moment.
func TestAWaveWaitsForTheMomentOfALowerOneInAnOpenWindowAndForNoOtherTime(t *testing.T) {
	const nightly = "0 1 * * * for 1h"
	before := time.Date(2026, 3, 28, 0, 30, 0, 0, time.UTC)
	opening := before.Add(30 * time.Minute)
	tests := []struct {
		name          string
		first, second map[string]string
		at            time.Time
		want          plan.Reason // what the second one waits for at its own moment
	}{
		{"its moment is to come", map[string]string{workload.AnnotationWindow: nightly}, map[string]string{workload.AnnotationWindow: nightly}, opening, plan.LowerWave},
		{"to one that has no window, too", map[string]string{workload.AnnotationWindow: nightly}, nil, opening, plan.LowerWave},
		{"its window is closed", map[string]string{workload.AnnotationWindow: nightly}, nil, before, plan.None},
		{"its window is not valid", map[string]string{workload.AnnotationWindow: "nightly"}, nil, opening, plan.None},
		{"it is on hold in its window", map[string]string{workload.AnnotationWindow: nightly, "keyturn.dev/hold": "tofu apply"}, nil, opening, plan.None},
		{"it was rolled recently", map[string]string{
			workload.AnnotationMinInterval: "1h", "keyturn.dev/rolled-at": opening.Add(-time.Minute).Format(time.RFC3339),
		}, nil, opening, plan.None},
		{"it was rolled recently and its moment is to come", map[string]string{
			workload.AnnotationWindow:      nightly,
			workload.AnnotationMinInterval: "1h", "keyturn.dev/rolled-at": opening.Add(-time.Minute).Format(time.RFC3339),
		}, nil, opening, plan.None},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now, options := tt.at, testOptions()
			options.Now = func() time.Time { return now }
			l := loopOf(t, options)
			defer finishPatches(l)
			read := func(name, wave string, annotations map[string]string) *workload.Workload {
				deployment := webDeployment("50", rollOn("auto"))
				deployment.Name, deployment.UID = name, "uid-"+deployment.UID
				deployment.Annotations["keyturn.dev/wave"] = wave
				maps.Copy(deployment.Annotations, annotations)
				w, _ := l.intake.index.Read(deployments, deployment)
				l.intake.index.Listed(w, "")
				return w
			}
			names := [2]string{"web-0", "web-1"}
			for i := 1; !momentOf(t, names[0], nightly, before).After(momentOf(t, names[1], nightly, before)); i++ {
				names[0] = fmt.Sprintf("web-%d", i+1)
			}
			first, second := read(names[0], "0", tt.first), read(names[1], "1", tt.second)
			for _, w := range []*workload.Workload{first, second} {
				l.debounce.release(l.debounce.pend(w, changeOf(nil)), now)
			}
			l.dispatcher.dispatch(t.Context())
			if at, _ := second.Opening(now); at.After(now) {
				if p := l.debounce.byKey[second.Key()]; p.held != plan.WindowClosed {
					t.Fatalf("at the opening it waits for %s", p.held)
				}
				now = at
				l.dispatcher.dispatch(t.Context())
			}
			got := plan.None
			if p := l.debounce.byKey[second.Key()]; p != nil {
				got = p.held
			}
			if got != tt.want {
				t.Errorf("it waits for %s, want %s", got, tt.want)
			}
			if tt.want == plan.None {
				return
			}
			now, _ = first.Opening(now)
			l.dispatcher.dispatch(t.Context())
			if p := l.debounce.byKey[first.Key()]; p != nil {
				t.Errorf("at its moment the first one waits for %s", p.held)
			}
		})
	}
}

// momentOf returns when a Deployment may be rolled in windows.
func momentOf(t *testing.T, name, windows string, now time.Time) time.Time {
	t.Helper()
	deployment := webDeployment("50", map[string]string{workload.AnnotationWindow: windows})
	deployment.Name = name
	w, _ := workload.Read(deployments, deployment, workload.Reading{})
	at, _ := w.Opening(now)
	return at
}
