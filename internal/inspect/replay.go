package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
)

// ReplayOptions select dead letters whose events the actuator is to process again.
type ReplayOptions struct {
	// IDs are the ids of dead letters. If set, the other selecting fields are ignored.
	IDs []uint64
	// All selects all dead letters whose replay has not been requested yet. The fields below narrow that down.
	All bool
	// Reason selects dead letters with this reason, and Namespace those about sources in it. Empty means any.
	Reason, Namespace string
	// Since selects dead letters from then on: a duration before now, or a time in RFC 3339. Empty means all.
	Since string
	// StoresFrom are the clusters whose watchers watch secret stores for this one.
	StoresFrom []string
	// DryRun only lists the dead letters.
	DryRun bool
}

// allLetters is more than StreamDeadLetters can hold.
const allLetters = 1 << 20

// replayer replays dead letters: an events.Bus.
type replayer interface {
	deadLetters
	CanReplay(ctx context.Context, letter events.DeadLetter, storesFrom []string) error
	Replay(ctx context.Context, letter events.DeadLetter) error
}

// selection decides which dead letters to replay.
type selection struct {
	ReplayOptions

	since time.Time
}

// selected validates the options and returns the selection.
func (o ReplayOptions) selected(now time.Time) (*selection, error) {
	if len(o.IDs) == 0 && !o.All && o.Reason == "" && o.Namespace == "" && o.Since == "" {
		return nil, errors.New("no dead letters are named: want IDs, as actuator dead-letters lists them, or --all, --reason, --namespace or --since")
	}
	history := HistoryOptions{Since: o.Since}
	since, err := history.since(now)
	return &selection{ReplayOptions: o, since: since}, err
}

func (s *selection) has(letter events.DeadLetter) bool {
	if len(s.IDs) > 0 {
		return slices.Contains(s.IDs, letter.ID)
	}
	address, _ := events.ParseSubject(letter.Subject)
	return letter.Replayed.IsZero() && !letter.Time.Before(s.since) && (s.Reason == "" || s.Reason == letter.Reason) &&
		(s.Namespace == "" || s.Namespace == address.Namespace)
}

// Replay asks the actuator to process the events of dead letters again, and writes a line about each. A dead letter that cannot be checked at the
// moment does not stop the others. The error counts those, and the ones that were named by id and cannot be replayed.
func Replay(ctx context.Context, options ReplayOptions, on replayer, now time.Time, out io.Writer) error {
	s, err := options.selected(now)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	letters, err := on.DeadLetters(bounded, allLetters)
	if err != nil {
		return fmt.Errorf("reading the dead letters: %w", err)
	}
	letters = slices.DeleteFunc(letters, func(letter events.DeadLetter) bool { return !s.has(letter) })
	for _, id := range s.IDs {
		if !slices.ContainsFunc(letters, func(letter events.DeadLetter) bool { return letter.ID == id }) {
			err = errors.Join(err, fmt.Errorf("%w dead letter %d", errMissing, id))
		}
	}
	if err != nil {
		return err
	}
	if len(letters) == 0 {
		fmt.Fprintln(out, "There are no such dead letters that have not been replayed.")
		return nil
	}
	return s.replay(ctx, letters, on, out)
}

// replayResult is the result for one dead letter.
type replayResult int

const (
	replayAsked replayResult = iota
	replayRefused
	// replayWith means that a later dead letter has the same event, and is replayed instead.
	replayWith
	// replayBehind means that the servers that answered are behind the stream.
	replayBehind
	// replayUnanswered means that the stream could not be read.
	replayUnanswered
)

// patience is after how many dead letters in a row without an answer, each after a timeout, replay gives up: further ones
// would have no answer, either.
const patience = 3

// replay replays the dead letters, each event once.
func (s *selection) replay(ctx context.Context, letters []events.DeadLetter, on replayer, out io.Writer) error {
	count := make(map[replayResult]int)
	var ended error
	err := View{}.WriteTable(out, func(row func(...any)) {
		row("ID", "REASON", "SUBJECT", "REPLAY")
		ended = s.each(ctx, letters, on, count, row)
	})
	if err != nil {
		return err
	}
	switch {
	case s.DryRun:
		fmt.Fprintln(out, "Nothing was requested: --dry-run.")
	case count[replayAsked] > 0:
		fmt.Fprintln(out, "The actuator takes these events again. actuator history --since 5m says what comes of them.")
	}
	switch later := count[replayBehind] + count[replayUnanswered]; {
	case ended != nil:
		return ended
	case later > 0:
		return fmt.Errorf("%d of %d dead letters cannot be replayed now: try again later", later, len(letters))
	case len(s.IDs) > 0 && count[replayRefused] > 0:
		return fmt.Errorf("%d of %d dead letters cannot be replayed", count[replayRefused], len(letters))
	}
	return nil
}

// each replays the dead letters one by one, adds a row for each, and counts the results. An error says at which dead letter it ended.
func (s *selection) each(
	ctx context.Context, letters []events.DeadLetter, on replayer, count map[replayResult]int, row func(cells ...any),
) error {
	last, inRow := lastLetters(letters), 0
	for _, letter := range letters {
		var result replayResult
		var text string
		if again, ok := last[keyOf(letter)]; ok && again != letter.ID {
			result, text = replayWith, fmt.Sprintf("with %d, which has the same event", again)
		} else {
			var err error
			if result, text, err = s.one(ctx, letter, on); err != nil {
				return fmt.Errorf("%d asked for, ended at dead letter %d: %w", count[replayAsked], letter.ID, err)
			}
		}
		count[result]++
		row(letter.ID, cmp.Or(letter.Reason, "-"), cmp.Or(letter.Subject, "-"), text)
		if inRow++; result != replayUnanswered {
			inRow = 0
		}
		if inRow == patience {
			return fmt.Errorf("%d asked for, ended at dead letter %d: the stream does not answer", count[replayAsked], letter.ID)
		}
	}
	return nil
}

// letterKey identifies the event that a dead letter is about.
type letterKey struct {
	subject string
	seq     uint64
}

func keyOf(letter events.DeadLetter) letterKey { return letterKey{letter.Subject, letter.Seq} }

// lastLetters returns the id of the last dead letter of each event. It leaves out dead letters without a subject, whose event is not known.
func lastLetters(letters []events.DeadLetter) map[letterKey]uint64 {
	last := make(map[letterKey]uint64, len(letters))
	for _, letter := range letters {
		if letter.Subject != "" {
			last[keyOf(letter)] = letter.ID
		}
	}
	return last
}

// one replays one dead letter, if possible, and returns the result with a text about it. An error also ends the replay of the others.
func (s *selection) one(ctx context.Context, letter events.DeadLetter, on replayer) (replayResult, string, error) {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := on.CanReplay(bounded, letter, s.StoresFrom)
	reject, rejected := errors.AsType[*events.RejectError](err)
	switch {
	case errors.Is(err, events.ErrSuperseded):
		return replayRefused, "no: " + events.ErrSuperseded.Error(), nil
	case errors.Is(err, events.ErrNotFound):
		return replayRefused, "no: the stream has no event of the source any more", nil
	case rejected:
		return replayRefused, "no: it cannot be acted on: " + reject.Error(), nil
	case err != nil && ctx.Err() != nil:
		return replayUnanswered, "", err
	case errors.Is(err, events.ErrBehind):
		return replayBehind, "not now: " + events.ErrBehind.Error(), nil
	case err != nil:
		return replayUnanswered, "not now: " + err.Error(), nil
	case s.DryRun:
		return replayAsked, "can be asked for", nil
	}
	err = on.Replay(bounded, letter)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) {
		err = fmt.Errorf("no answer: only the actuator's NATS user may ask for a replay, see --replay-creds: %w", err)
	}
	return replayAsked, "asked for", err
}
