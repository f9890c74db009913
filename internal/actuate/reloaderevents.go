package actuate

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// tellAsReloader queues the Kubernetes Events that Reloader writes, with its reasons and texts: one for each source that a workload is rolled
// for, because Reloader rolls once for each, and one for a patch that is given up.
func (k *kubeEvents) tellAsReloader(ctx context.Context, outcome events.Outcome) {
	w := outcome.Workload
	kind, ok := k.kinds.Named(w.Kind)
	if !ok {
		return
	}
	switch {
	case outcome.Verb == events.VerbStarted:
		for _, changed := range outcome.Sources {
			source, name, _ := strings.Cut(changed.Source, "/")
			message := fmt.Sprintf("Changes detected in '%s' of type '%s' in namespace '%s', Updated '%s' of type '%s' in namespace '%s'",
				name, strings.ToUpper(source), w.Namespace, w.Name, kind.Title, w.Namespace)
			k.write(ctx, w, corev1.EventTypeNormal, "Reloaded", message, tracedBy(outcome))
		}
	case outcome.Verb == events.VerbFailed && outcome.Reason == events.ReasonPatchDenied:
		message := fmt.Sprintf("Update for '%s' of type '%s' in namespace '%s' failed with error %s",
			w.Name, kind.Title, w.Namespace, outcome.Message)
		k.write(ctx, w, corev1.EventTypeWarning, "ReloadFail", message, tracedBy(outcome))
	}
}
