package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// heldReasons are the reasons of outcomes held, and whether a sink reports them by default. It does so if there is a Kubernetes Event as well. A
// routine rotation has thousands of the others, one for each workload that waits for a slot, and a failure would wait behind them.
var heldReasons = map[string]bool{
	"peer-failed":      true,
	"canary-first":     true,
	"lower-wave":       true,
	"on-hold":          true,
	"source-on-hold":   true,
	"window-closed":    true,
	"rolled-too-often": true,
	"rollout-aborted":  true,

	"limit-reached":           false,
	"namespace-limit-reached": false,
	"rolled-recently":         false,
	"pause-period":            false,
	"files-pending":           false,
	"kind-not-served":         false,
}

// checkHeldReasons checks the reasons. The verbs have their default already.
func (s *sinkConfig) checkHeldReasons() []error {
	var problems []error
	if len(s.HeldReasons) > 0 && !slices.Contains(s.Verbs, events.VerbHeld) {
		problems = append(problems, fmt.Errorf("heldReasons: are for the verb %s, which verbs does not have", events.VerbHeld))
	}
	for i, reason := range s.HeldReasons {
		if _, known := heldReasons[reason]; !known {
			all := strings.Join(slices.Sorted(maps.Keys(heldReasons)), ", ")
			problems = append(problems, fmt.Errorf("heldReasons[%d]: %q is not known, want one of %s", i, reason, all))
		}
	}
	return problems
}

// wantsHeld reports whether the sink sends an outcome, if it is held. A reason that is not known, such as one of a later version, is reported by
// default.
func (s *sink) wantsHeld(o events.Outcome) bool {
	if o.Verb != events.VerbHeld {
		return true
	}
	if len(s.heldReasons) > 0 {
		return slices.Contains(s.heldReasons, o.Reason)
	}
	loud, known := heldReasons[o.Reason]
	return loud || !known
}
