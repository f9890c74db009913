package main

import (
	"strconv"

	"github.com/keyturn/keyturn/internal/events"
)

// told has what HISTORY says about workloads. It is the union of all readings, because a fault may discard HISTORY.
type told struct {
	// rolls has the revisions for which there is an outcome, and skips the latest version of each source whose content the pods have
	// without a roll. Both are by workload.
	rolls map[string]map[string]bool
	skips map[string]map[string]int64
}

func newTold() told {
	return told{rolls: make(map[string]map[string]bool), skips: make(map[string]map[string]int64)}
}

// add adds an outcome.
func (t told) add(outcome events.Outcome) {
	name := outcome.Workload.String()
	if t.rolls[name] == nil {
		t.rolls[name], t.skips[name] = make(map[string]bool), make(map[string]int64)
	}
	if !outcome.StartedAt.IsZero() {
		t.rolls[name][outcome.Revision] = true
		return
	}
	if outcome.Verb != events.VerbSkipped || outcome.Reason != "up-to-date" {
		return
	}
	for _, source := range outcome.Sources {
		if version, err := strconv.ParseInt(source.ResourceVersion, 10, 64); err == nil {
			t.skips[name][source.Source] = max(t.skips[name][source.Source], version)
		}
	}
}

// rolled reports whether there is an outcome of a roll.
func (t told) rolled(workload, revision string) bool { return t.rolls[workload][revision] }
