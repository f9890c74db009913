package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// Status is the current state of a cluster according to its streams.
type Status struct {
	Cluster string `json:"cluster"`
	// Since is the start of the period for the counts: changes of sources, and rollouts by how they ended.
	Since     time.Time `json:"since"`
	Changes   int       `json:"changes"`
	Completed int       `json:"rolloutsCompleted"`
	Failures  int       `json:"rolloutsFailed"`
	// LastChange is when a source last changed. It is zero if none has changed since Since.
	LastChange time.Time      `json:"lastChange,omitzero"`
	Streams    []events.Usage `json:"streams"`
	// Waiting are the workloads that are held, Failed those whose last rollout failed, and Rolling those that are being rolled.
	Waiting []StandingWorkload `json:"waiting"`
	Failed  []StandingWorkload `json:"failed"`
	Rolling []StandingWorkload `json:"rolling"`
}

// StandingWorkload is a workload with the outcome that describes its state.
type StandingWorkload struct {
	Workload  string    `json:"workload"`
	Namespace string    `json:"namespace"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message,omitempty"`
	Time      time.Time `json:"time"`
}

// ReadStatus reads the status of a cluster, for one namespace or, if that is empty, for all. It ignores events from before since.
func ReadStatus(ctx context.Context, bus *events.Bus, namespace string, since time.Time) (Status, error) {
	s := Status{
		Cluster: bus.Cluster(), Since: since,
		Waiting: []StandingWorkload{}, Failed: []StandingWorkload{}, Rolling: []StandingWorkload{},
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var err error
	if s.Streams, err = bus.Usage(bounded); err != nil {
		return s, err
	}
	workloads := make(map[string]*standing) // by UID
	query := events.HistoryQuery{Clusters: []string{s.Cluster}, Namespace: namespace, Since: since}
	err = bus.History(ctx, query, func(stored events.Stored) error {
		if outcome, err := stored.Outcome(); err == nil {
			s.count(outcome)
			if workloads[outcome.Workload.UID] == nil {
				workloads[outcome.Workload.UID] = &standing{}
			}
			workloads[outcome.Workload.UID].add(outcome)
		} else if change, err := stored.Change(); err == nil && change.Verb != events.VerbObserved {
			s.Changes++
			s.LastChange = change.Time
		}
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("reading the history: %w", err)
	}
	for _, w := range workloads {
		s.place(w)
	}
	for _, list := range [][]StandingWorkload{s.Waiting, s.Failed, s.Rolling} {
		slices.SortFunc(list, func(a, b StandingWorkload) int {
			return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload))
		})
	}
	return s, nil
}

func (s *Status) count(outcome events.Outcome) {
	switch outcome.Verb {
	case events.VerbCompleted:
		s.Completed++
	case events.VerbFailed:
		s.Failures++
	}
}

// place adds a workload to the lists that it belongs to.
func (s *Status) place(w *standing) {
	if w.waits() {
		s.Waiting = append(s.Waiting, standingOf(*w.held))
	}
	if w.last == nil {
		return
	}
	switch w.last.Verb {
	case events.VerbFailed:
		s.Failed = append(s.Failed, standingOf(*w.last))
	case events.VerbStarted:
		s.Rolling = append(s.Rolling, standingOf(*w.last))
	}
}

func standingOf(outcome events.Outcome) StandingWorkload {
	return StandingWorkload{
		Workload: outcome.Workload.String(), Namespace: outcome.Workload.Namespace,
		Reason: outcome.Reason, Message: outcome.Message, Time: outcome.Time,
	}
}
