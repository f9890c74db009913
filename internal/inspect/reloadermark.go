package inspect

import (
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// reloaderMark is what Reloader left on a workload.
type reloaderMark struct {
	// at is when Reloader last wrote the workload, in whole seconds. It is zero if Reloader never did.
	at time.Time
	// source is the source that Reloader last rolled the workload for, if the marker says so.
	source events.Source
	// variables are the names of the variables that Reloader has written. They do not say when.
	variables []string
}

// markOf reads what Reloader left on a workload.
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
	mark.source = parseReloadedFrom(template.Annotations[workload.AnnotationReloadedFrom])
	for _, container := range template.Spec.Containers {
		for _, variable := range container.Env {
			if strings.HasPrefix(variable.Name, workload.ReloaderVariablePrefix) {
				mark.variables = append(mark.variables, variable.Name)
			}
		}
	}
	return mark
}

// parseReloadedFrom returns the source that Reloader's annotation names, or none.
func parseReloadedFrom(text string) events.Source {
	var from struct{ Type, Name string }
	if json.Unmarshal([]byte(text), &from) != nil {
		return events.Source{}
	}
	source, err := events.ParseSource(strings.ToLower(from.Type) + "/" + from.Name)
	if err != nil || len(validation.IsDNS1123Subdomain(source.Name)) > 0 {
		return events.Source{}
	}
	return source
}
