package workload

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/reloader"
)

// Pause is how long the changes of a Deployment are gathered before a roll, by Reloader's annotations. The zero value means no pause.
type Pause struct {
	// Period is how long changes are gathered. Zero means not at all.
	Period time.Duration
	// Begun is when the current pause began, according to the workload. Zero means no pause.
	Begun time.Time
}

// Of returns the end of the pause for changes that arrived at since, zero if there is no pause, and whether they begin a new one. A pause that begins
// in the future is ignored.
func (p Pause) Of(since, now time.Time) (end time.Time, begins bool) {
	if p.Period == 0 {
		return time.Time{}, false
	}
	hasBegun := !p.Begun.IsZero() && !p.Begun.After(now.Add(clockTolerance))
	if end := p.Begun.Add(p.Period); hasBegun && !since.After(end) {
		return end, false
	}
	return since.Add(p.Period), true
}

// reloaderState contains the parts that are read only with Reading.Reloader.
type reloaderState struct {
	Pause Pause
	// pausedAtKey is the key of the annotation with the beginning of a pause. If it is empty, the beginning is not written.
	pausedAtKey string
	// Reloaded is the time of Reloader's newest write by the API server's clock, in whole seconds. It is zero if unknown.
	Reloaded time.Time
	// containers is nil for a target. byVariable is Reading.Variables.
	containers *containers
	byVariable bool
}

// readReloader reads Reloader's annotations and variables on a workload, and where a roll would write them.
func (w *Workload) readReloader(meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec, reading Reading) {
	w.Reloaded, w.byVariable = newestOf(meta, ofReloader), reading.Variables
	if w.target == nil { // Reloader rolls no targets.
		w.containers = containersOf(template)
	}
	if w.ID.Kind == deployments.Name {
		w.readPause(reading.keys(), meta.Annotations)
	}
}

// IsPausedBySomeone reports whether spec.paused is set, which Keyturn never does. Whoever has set it must continue the rollout.
func (w *Workload) IsPausedBySomeone() bool {
	return w.ID.Kind == deployments.Name && w.Progress.State == Waiting && !w.IsRun()
}

// readPause reads the annotations of a Deployment. An invalid time, as after a manual edit, counts as no pause.
func (w *Workload) readPause(keys reloader.Annotations, on map[string]string) {
	w.pausedAtKey = keys.PausedAt
	w.Pause.Begun, _ = time.Parse(time.RFC3339, on[keys.PausedAt])
	text, ok := on[keys.PausePeriod]
	if !ok {
		return
	}
	period, err := time.ParseDuration(text)
	if err != nil || period <= 0 {
		w.problem(keys.PausePeriod, "", fmt.Sprintf("%.100q is not a duration of more than zero, such as 30s or 5m", text))
		return
	}
	w.Pause.Period = period
}

// pauseAfter returns the operations that write the beginning of a pause, none if it does not change.
func (w *Workload) pauseAfter(write Write) []operation {
	var after string
	switch {
	case write.EndsPause:
	case write.PausedAt.IsZero():
		return nil
	default:
		after = roundedUp(write.PausedAt).UTC().Format(time.RFC3339)
	}
	if after == w.stored.text(w.pausedAtKey) {
		return nil
	}
	return w.stored.write(w.pausedAtKey, after)
}
