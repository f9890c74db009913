package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// hold is the last outcome about a workload's wait, and whether it still waits.
type hold struct {
	reportedOutcome
	// Until is when the hold ends, or zero if no time ends it.
	Until time.Time `json:"until,omitzero"`
	// WaitsFor is the last outcome of the workload that this one waits for. It is nil if the hold names no workload, or that one has no outcome.
	WaitsFor *reportedOutcome `json:"waitsFor,omitempty"`
	// Over is why the hold is no longer in force. It is empty if the hold is still in force, as far as known.
	Over string `json:"over,omitempty"`

	reason plan.Reason
	// peer is the workload in the hold. Its name is empty if there is none.
	peer events.Workload
}

// readHeld reads the last hold of a workload. It returns nil if there is none, or if all of its sources have had another outcome since.
func readHeld(ctx context.Context, reader *bus.Reader, cluster string, id events.Workload) (*hold, error) {
	query := bus.HistoryQuery{
		Clusters: []string{cluster}, Kind: events.KindRollout, Namespace: id.Namespace, Name: id.Kind + "-" + id.Name,
	}
	var s waitState
	if err := readHistory(ctx, reader, query, nil, s.add); err != nil {
		return nil, err
	}
	if !s.waits() || s.uid != id.UID {
		return nil, nil //nolint:nilnil // The workload is not held.
	}
	h := &hold{reportedOutcome: reportedOutcome{s.held.Verb, s.held.Time, *s.held}}
	h.parse()
	return h, h.readPeer(ctx, reader, cluster)
}

// parse reads the time or the workload at the end of the message.
func (h *hold) parse() {
	h.reason, _ = plan.Named(h.Reason, h.Message)
	if _, text, found := strings.Cut(h.Message, ": until "); found {
		text, _, _ = strings.Cut(text, ": ")
		h.Until, _ = time.Parse(time.RFC3339, text)
	}
	last := h.Message[strings.LastIndex(h.Message, ": ")+1:]
	kind, name, found := strings.Cut(strings.TrimSpace(last), "/")
	if found && h.reason.Waiting() == plan.ForPeers {
		h.peer = events.Workload{Kind: kind, Namespace: h.Workload.Namespace, Name: name}
	}
}

// readPeer reads the last outcome of the workload that this one waits for.
func (h *hold) readPeer(ctx context.Context, reader *bus.Reader, cluster string) error {
	if h.peer.Name == "" {
		return nil
	}
	stored, err := reader.Last(ctx, events.OutcomeSubject(cluster, h.peer))
	switch {
	case errors.Is(err, events.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("reading the last outcome of %s: %w", h.peer, err)
	}
	if outcome, err := stored.Outcome(); err == nil {
		h.WaitsFor = &reportedOutcome{outcome.Verb, outcome.Time, outcome}
	}
	return nil
}

// end sets the reason why the hold is over, if the decisions about the workload's sources, or its current annotations, show this.
func (h *hold) end(rows []explanation, timing obstacle, now time.Time) {
	decides := h.reason == plan.SourceOnHold || h.reason == plan.Aborted
	decided := slices.ContainsFunc(rows, func(e explanation) bool { return e.decision.Reason == h.reason })
	switch {
	case !slices.ContainsFunc(rows, func(e explanation) bool { return e.isPending() }):
		h.Over = "nothing is pending any more"
	case decides && decided, timing.reason == h.reason:
	case decides:
		h.Over = "what held it has ended"
	case h.reason == plan.KindNotServed:
		h.Over = "its kind is served again"
	case timing.reason != plan.None:
		h.Over = "something else holds it now"
	case timing.rollsNow && h.reason.Waiting() == plan.ForPeople && h.reason != plan.SourceOnHold:
		h.Over = workload.AnnotationRollNow + " was set since"
	case timing.known && h.reason == plan.OnHold:
		h.Over = "the hold was taken off"
	case !h.Until.IsZero() && !now.Before(h.Until):
		h.Over = "that time has come"
	}
}

// ends describes, by reason, the event that ends a hold without an end in time.
var ends = map[plan.Reason]string{
	plan.Limit:       "It rolls once rollouts have ended and its turn has come.",
	plan.LowerWave:   "It rolls once the workloads of lower waves are done.",
	plan.CanaryFirst: "It rolls once the pods of that workload have stayed ready.",
	plan.PeerFailed:  "It rolls once that workload has rolled out after all, its rollout is undone, or a source changes again.",
	plan.SourceOnHold: "It rolls once " + events.AnnotationHold + " is removed from the source, or once " + workload.AnnotationRollNow +
		" has another value.",
}

// noteHold adds since when, why and for which workload the workload has been waiting, and what ends the wait.
func (r *Report) noteHold(h *hold) {
	if h.Over != "" {
		r.note("It was held at %s: %s (%s). That is over: %s.", r.past(h.Time), h.Message, h.Reason, h.Over)
		return
	}
	lines := []string{fmt.Sprintf("It has been held since %s: %s (%s)", r.past(h.Time), h.Message, h.Reason)}
	if h.peer.Name != "" {
		lines = append(lines, r.peerText(h))
	}
	if end := ends[h.reason]; end != "" {
		lines = append(lines, end)
	} else if !h.Until.IsZero() {
		lines = append(lines, "That ends at "+r.coming(h.Until)+".")
	}
	r.noteState(h.reason, lines...)
}

// peerText describes the last outcome of the workload that this one waits for.
func (r *Report) peerText(h *hold) string {
	last := h.WaitsFor
	switch {
	case last == nil:
		return fmt.Sprintf("%s has no outcome on the stream yet.", h.peer)
	case last.Verb == events.VerbCompleted && last.Time.After(h.Time):
		return fmt.Sprintf("%s has completed since, at %s: it waits for another one now, or rolls next.", h.peer, r.past(last.Time))
	}
	return fmt.Sprintf("%s: %s at %s (%s)", h.peer, last.Verb, r.past(last.Time), last.Reason)
}

// waitState is the wait of a workload according to the outcomes of its name, which are added in order, oldest first.
type waitState struct {
	// uid is the UID of the newest workload of the name, and before contains the UIDs of earlier ones.
	uid    string
	before []string
	// held is the last outcome about a wait of the workload, and open contains its sources without another outcome since.
	held *events.Outcome
	open []string
}

// add adds the next outcome. Outcomes of an earlier workload with the name do not count for one that was created again.
func (s *waitState) add(outcome events.Outcome) {
	switch uid := outcome.Workload.UID; {
	case slices.Contains(s.before, uid):
		return
	case uid != s.uid:
		*s = waitState{uid: uid, before: append(s.before, s.uid)}
	}
	if outcome.Verb == events.VerbHeld {
		s.held, s.open = &outcome, sourcesOf(outcome)
		return
	}
	if s.held == nil || !outcome.StartedAt.IsZero() && outcome.StartedAt.Before(s.held.Time) {
		return // The outcome may be about the end of an earlier rollout.
	}
	decided := sourcesOf(outcome)
	s.open = slices.DeleteFunc(s.open, func(source string) bool { return slices.Contains(decided, source) })
}

// waits reports whether the workload still waits according to its outcomes.
func (s *waitState) waits() bool { return s.held != nil && len(s.open) > 0 }

// obstacle is a user's setting, in the annotations of a workload or its namespace, that prevents the workload from being rolled now.
type obstacle struct {
	// reason is plan.None if there is no obstacle.
	reason plan.Reason
	// said describes the obstacle for users. It also mentions a request to roll now.
	said string
	// rollsNow says that the workload was requested to roll regardless of holds, and known that its namespace's annotations could be read.
	rollsNow, known bool
}
