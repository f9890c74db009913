package workload

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/reloader"
)

// Pause is how long the changes of a Deployment are gathered before they roll it, as Reloader's annotations say. The zero value means not at all.
type Pause struct {
	// Period is how long changes are gathered. Zero means not at all.
	Period time.Duration
	// Begun is when the last pause began, as long as the workload says so. Zero means that there is none.
	Begun time.Time
}

// Of returns the end of the pause that gathers changes since a time, zero if none does, and whether they begin a new pause. A pause that is noted as
// one of the future is ignored.
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

// reloaderState is what is only read with Reading.Reloader.
type reloaderState struct {
	Pause Pause
	// pausedAtKey is the key of the annotation that says when a pause began. If it is empty, none is written.
	pausedAtKey string
	// Reloaded is the time of Reloader's newest write by the API server's clock, to the second. It is zero if not known.
	Reloaded time.Time
	// containers is nil for a target. byVariable is Reading.Variables.
	containers *containers
	byVariable bool
}

// readReloader reads what Reloader has written on a workload, and what it would write.
func (w *Workload) readReloader(meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec, reading Reading) {
	w.Reloaded, w.byVariable = newestOf(meta, ofReloader), reading.Variables
	if w.target == nil { // Reloader rolls no targets, so nobody looks for what it writes.
		w.containers = containersOf(template)
	}
	if w.ID.Kind == deployments.Name {
		w.readPause(reading.keys(), meta.Annotations)
	}
}

// IsPausedBySomeone reports whether spec.paused is set, which Keyturn never does. Whoever set it decides when the rollout continues.
func (w *Workload) IsPausedBySomeone() bool {
	return w.ID.Kind == deployments.Name && w.Progress.State == Waiting && !w.IsRun()
}

// readPause reads the annotations of a Deployment. A beginning that is not a valid time, as after a manual edit, counts as none.
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

// pauseAfter returns the operations that write when a pause began, none if that stays.
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
