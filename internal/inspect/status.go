package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
)

// Status is the current state of a cluster according to its streams.
type Status struct {
	Cluster string `json:"cluster"`
	// Since is the start of the period for the counts: changes of sources, and rollouts by result.
	Since     time.Time `json:"since"`
	Changes   int       `json:"changes"`
	Completed int       `json:"rolloutsCompleted"`
	Failures  int       `json:"rolloutsFailed"`
	// LastChange is when a source last changed. It is zero if none has changed since Since.
	LastChange time.Time   `json:"lastChange,omitzero"`
	Streams    []bus.Usage `json:"streams"`
	// DeadLetters counts the dead letters of the period, among the newest 1,000.
	DeadLetters int `json:"deadLetters"`
	// Waiting are the workloads that are held, Failed those whose last rollout failed, and Rolling those that are being rolled. A deleted workload,
	// or one that has recovered without another rollout, stays in Failed.
	Waiting []WorkloadStatus `json:"waiting"`
	Failed  []WorkloadStatus `json:"failed"`
	Rolling []WorkloadStatus `json:"rolling"`
}

// WorkloadStatus is a workload with the outcome that describes its state.
type WorkloadStatus struct {
	Workload  string    `json:"workload"`
	Namespace string    `json:"namespace"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message,omitempty"`
	Time      time.Time `json:"time"`
}

// The status looks at the newest maxLetters dead letters, for at most lettersTimeout, because they may have 64 MiB to send through a port-forward.
const (
	maxLetters     = 1000
	lettersTimeout = time.Minute
)

// ReadStatus reads the status of a cluster, for one namespace or, if that is empty, for all. It counts events since a time. The lists contain every
// workload according to the streams, however old its outcome is: a workload that has waited for days has no newer one.
func ReadStatus(ctx context.Context, stream *bus.Bus, namespace string, since time.Time) (Status, error) {
	s := Status{
		Cluster: stream.Cluster(), Since: since,
		Waiting: []WorkloadStatus{}, Failed: []WorkloadStatus{}, Rolling: []WorkloadStatus{},
	}
	if err := s.readStreams(ctx, stream); err != nil {
		return s, err
	}
	if err := s.readStates(ctx, stream, namespace); err != nil {
		return s, fmt.Errorf("reading the last outcomes: %w", err)
	}
	if err := errors.Join(s.readWaiting(ctx, stream, namespace), s.readCounts(ctx, stream, namespace)); err != nil {
		return s, err
	}
	for _, list := range [][]WorkloadStatus{s.Waiting, s.Failed, s.Rolling} {
		slices.SortFunc(list, func(a, b WorkloadStatus) int {
			return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload))
		})
	}
	return s, nil
}

// readStreams reads the usage of the streams, and counts the dead letters of the period.
func (s *Status) readStreams(ctx context.Context, stream *bus.Bus) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var err error
	if s.Streams, err = stream.Usage(bounded); err != nil {
		return err
	}
	reading, stop := context.WithTimeout(ctx, lettersTimeout)
	defer stop()
	letters, err := stream.DeadLetters(reading, maxLetters)
	if err != nil {
		return fmt.Errorf("reading the dead letters: %w", err)
	}
	for _, letter := range letters {
		if !letter.Time.Before(s.Since) {
			s.DeadLetters++
		}
	}
	return nil
}

func (s *Status) readStates(ctx context.Context, stream *bus.Bus, namespace string) error {
	return stream.State(ctx, []string{events.OutcomeFilter(s.Cluster)}, func(stored events.Stored) error {
		outcome, err := stored.Outcome()
		if err != nil || namespace != "" && outcome.Workload.Namespace != namespace {
			return nil //nolint:nilerr // A message that is not an outcome is ignored.
		}
		switch outcome.Verb {
		case events.VerbFailed:
			s.Failed = append(s.Failed, workloadStatus(outcome))
		case events.VerbStarted:
			s.Rolling = append(s.Rolling, workloadStatus(outcome))
		}
		return nil
	})
}

// readWaiting reads the waiting workloads from HISTORY, because CHANGES does not have them.
func (s *Status) readWaiting(ctx context.Context, stream *bus.Bus, namespace string) error {
	workloads := make(map[events.Workload]*waitState)
	query := bus.HistoryQuery{Clusters: []string{s.Cluster}, Kind: events.KindRollout, Namespace: namespace}
	err := readHistory(ctx, &stream.Reader, query, nil, func(outcome events.Outcome) {
		w := events.Workload{Kind: outcome.Workload.Kind, Namespace: outcome.Workload.Namespace, Name: outcome.Workload.Name}
		if workloads[w] == nil {
			workloads[w] = &waitState{}
		}
		workloads[w].add(outcome)
	})
	for _, w := range workloads {
		if w.waits() {
			s.Waiting = append(s.Waiting, workloadStatus(*w.held))
		}
	}
	return err
}

func (s *Status) readCounts(ctx context.Context, stream *bus.Bus, namespace string) error {
	query := bus.HistoryQuery{Clusters: []string{s.Cluster}, Namespace: namespace, Since: s.Since}
	onChange := func(change events.Change) {
		if change.Verb != events.VerbObserved {
			s.Changes++
			s.LastChange = change.Time
		}
	}
	return readHistory(ctx, &stream.Reader, query, onChange, func(outcome events.Outcome) {
		switch outcome.Verb {
		case events.VerbCompleted:
			s.Completed++
		case events.VerbFailed:
			s.Failures++
		}
	})
}

func workloadStatus(outcome events.Outcome) WorkloadStatus {
	return WorkloadStatus{
		Workload: outcome.Workload.String(), Namespace: outcome.Workload.Namespace,
		Reason: outcome.Reason, Message: outcome.Message, Time: outcome.Time,
	}
}
