package inspect

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// reloaderMark is the trace of Reloader on a workload.
type reloaderMark struct {
	// at is when Reloader last wrote the workload, in whole seconds. It is zero if Reloader never did.
	at time.Time
	// source is the source of Reloader's last roll of the workload, if the marker names it.
	source events.Source
	// variables are the names of the variables that Reloader has written, without a time.
	variables []string
}

func markOf(meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec) reloaderMark {
	var mark reloaderMark
	for _, entry := range meta.ManagedFields {
		if entry.Manager == workload.ReloaderManager && entry.Time != nil && entry.Time.After(mark.at) {
			mark.at = entry.Time.Time
		}
	}
	if mark.at.IsZero() {
		return mark
	}
	for _, container := range template.Spec.Containers {
		for _, variable := range container.Env {
			if strings.HasPrefix(variable.Name, workload.ReloaderVariablePrefix) {
				mark.variables = append(mark.variables, variable.Name)
			}
		}
	}
	source, observedAt := parseReloadedFrom(template.Annotations[workload.AnnotationReloadedFrom])
	// If there are variables, too, Reloader may have changed its strategy since it wrote the marker.
	if len(mark.variables) == 0 || workload.IsMarkerOf(mark.at, observedAt) {
		mark.source = source
	}
	return mark
}

// parseReloadedFrom returns the source in Reloader's annotation, or none, and when Reloader wrote it, in seconds of Unix time.
func parseReloadedFrom(text string) (from events.Source, observedAt int64) {
	var marker struct {
		Type, Name string
		ObservedAt int64
	}
	if json.Unmarshal([]byte(text), &marker) != nil {
		return events.Source{}, 0
	}
	source, err := events.ParseSource(strings.ToLower(marker.Type) + "/" + marker.Name)
	if err != nil || len(validation.IsDNS1123Subdomain(source.Name)) > 0 {
		return events.Source{}, 0
	}
	return source, marker.ObservedAt
}

// rolled reports whether Reloader rolled for a source after the source changed.
func (m reloaderMark) rolled(source string, changed time.Time) bool {
	if m.at.IsZero() || m.at.Before(changed) {
		return false
	}
	if m.source.Name != "" {
		return m.source.String() == source
	}
	parsed, err := events.ParseSource(source)
	return err == nil && slices.Contains(m.variables, workload.ReloaderVariable(parsed))
}

// hides reports whether Reloader may have rolled for a source that changed at the given time, and overwritten its mark since.
func (m reloaderMark) hides(changed time.Time) bool {
	return m.source.Name != "" && !m.at.Before(changed)
}

// isBlank reports whether Reloader wrote the workload without naming a source, as when it restarts a Rollout.
func (m reloaderMark) isBlank() bool {
	return !m.at.IsZero() && m.source.Name == "" && len(m.variables) == 0
}
