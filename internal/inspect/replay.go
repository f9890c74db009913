package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
)

// ReplayOptions select dead letters whose events the actuator is to take again.
type ReplayOptions struct {
	// IDs are those of dead letters. The other fields do not matter then.
	IDs []uint64
	// All selects all whose replay nobody has asked for yet. The others select of these.
	All bool
	// Reason selects those with this reason, and Namespace those about its sources. Empty means any.
	Reason, Namespace string
	// Since selects those from then on: a duration, or a time in RFC 3339. Empty means all.
	Since string
	// StoresFrom are the clusters whose watchers watch secret stores for this one.
	StoresFrom []string
	// DryRun only lists.
	DryRun bool
}

// allLetters is more than StreamDeadLetters has room for.
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

// selected validates the options.
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

// Replay has the actuator take the events of dead letters again, and lists what comes of each. The error says which of those that were named by id
// cannot be.
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
		fmt.Fprintln(out, "There are no such dead letters that nobody has replayed.")
		return nil
	}
	return s.replay(ctx, letters, on, out)
}

// replay replays the dead letters, each event once.
func (s *selection) replay(ctx context.Context, letters []events.DeadLetter, on replayer, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tREASON\tSUBJECT\tREPLAY")
	asked, refused := 0, 0
	for i, letter := range letters {
		result, err := "asked for", error(nil)
		if s.DryRun {
			result = "can be asked for"
		}
		switch again := isLater(letters[i+1:], letter); {
		case again != 0:
			result = fmt.Sprintf("with %d, which has the same event", again)
		default:
			err = s.one(ctx, letter, on)
		}
		reject, rejected := errors.AsType[*events.RejectError](err)
		switch {
		case errors.Is(err, events.ErrSuperseded):
			result = "no: " + events.ErrSuperseded.Error()
		case errors.Is(err, events.ErrNotFound):
			result = "no: the stream has no event of the source any more"
		case rejected:
			result = "no: it cannot be acted on: " + reject.Error()
		case err != nil:
			return errors.Join(table.Flush(), err)
		default:
			asked++
		}
		if err != nil {
			refused++
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", letter.ID, cmp.Or(letter.Reason, "-"), cmp.Or(letter.Subject, "-"), result)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch {
	case s.DryRun:
		fmt.Fprintln(out, "Nothing was asked for: --dry-run.")
	case asked > 0:
		fmt.Fprintln(out, "The actuator takes these events again. actuator history --since 5m says what comes of them.")
	}
	if len(s.IDs) > 0 && refused > 0 {
		return errors.New(strconv.Itoa(refused) + " of " + strconv.Itoa(len(letters)) + " dead letters cannot be replayed")
	}
	return nil
}

// isLater returns the id of a dead letter of the same event, zero if there is none.
func isLater(later []events.DeadLetter, letter events.DeadLetter) uint64 {
	for _, other := range later {
		if other.Subject == letter.Subject && other.Seq == letter.Seq && letter.Subject != "" {
			return other.ID
		}
	}
	return 0
}

// one replays one dead letter, if that can be done.
func (s *selection) one(ctx context.Context, letter events.DeadLetter, on replayer) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := on.CanReplay(bounded, letter, s.StoresFrom); err != nil || s.DryRun {
		return err
	}
	err := on.Replay(bounded, letter)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("no answer: only the actuator's NATS user may ask for a replay, see --replay-creds: %w", err)
	}
	return err
}
