package timeline

import (
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// changeWords say what happened to a source.
var changeWords = map[events.Verb]string{
	events.VerbObserved: "Found", events.VerbChanged: "Changed", events.VerbRotated: "Rotated", events.VerbDeleted: "Deleted",
	events.VerbSynced: "Synced", events.VerbIssued: "Issued", events.VerbFailed: "Failed",
}

// laterWords say what has happened to a workload since.
var laterWords = map[events.Verb]string{events.VerbStarted: "Rolling", events.VerbCompleted: "Ready", events.VerbFailed: "Failed"}

// isSynced reports whether an event is about an ExternalSecret, which is not a workload even if it has an outcome.
func isSynced(f *fact) bool {
	return strings.HasPrefix(f.object.name, string(events.KindExternalSecret)+"/")
}

func completedWord(f *fact) string {
	switch {
	case f.verb == events.VerbApplied:
		return "Applied"
	case f.reason == events.ReasonReloadedInPlace:
		return "Reloaded in place"
	case isSynced(f):
		return "Synced"
	}
	return "Ready"
}

// lower returns a word for the middle of a sentence.
func lower(word string) string { return strings.ToLower(word) }

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// wordOrder is the order in which the states of workloads are counted, the most urgent first.
var wordOrder = []string{
	"failed", "waits", "rolling", "ready", "reloaded in place", "applied", "superseded", "not rolled",
}
