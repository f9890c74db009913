package sources

import "github.com/keyturn/keyturn/internal/events"

// setCause adds to an event who wrote the object and which event requested that. If used names the same request, an earlier change was already its
// effect. An event with a request joins the request's trace.
func setCause(change *events.Change, writer events.Cause, asked request, used string) {
	if asked.event != "" && asked.event != used {
		writer.Event = asked.event
		if change.Verb != events.VerbObserved {
			change.Trace = asked.trace
		}
	}
	// A failed sync may be retried for the same request, so the request is not used up.
	if writer.Event == "" || change.Verb == events.VerbFailed {
		writer.Earlier = used
	}
	if writer != (events.Cause{}) {
		change.Cause = &writer
	}
}
