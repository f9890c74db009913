package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
)

// letterBox has dead letters, some of whose events cannot be replayed.
type letterBox struct {
	letters []events.DeadLetter
	// refused has the error why an event cannot be replayed, by the id of the dead letter.
	refused map[uint64]error
	// failure is the error of a request for a replay.
	failure  error
	replayed []uint64
	// looked counts the dead letters that were checked.
	looked int
}

func (b *letterBox) DeadLetters(context.Context, int) ([]events.DeadLetter, error) {
	return b.letters, nil
}

func (b *letterBox) CanReplay(_ context.Context, letter events.DeadLetter, _ []string) error {
	b.looked++
	return b.refused[letter.ID]
}

func (b *letterBox) Replay(_ context.Context, letter events.DeadLetter) error {
	if b.failure == nil {
		b.replayed = append(b.replayed, letter.ID)
	}
	return b.failure
}

func newLetterBox() *letterBox {
	letter := func(id uint64, ago time.Duration, reason, namespace, name string) events.DeadLetter {
		return events.DeadLetter{
			ID: id, Seq: id, Time: historyNow.Add(-ago), Reason: reason, Subject: "keyturn.v1.demo.secret." + namespace + "." + name,
		}
	}
	box := &letterBox{letters: []events.DeadLetter{
		letter(3, 5*time.Hour, "malformed", "shop", "old"), letter(4, 4*time.Hour, "patch-denied", "shop", "db"),
		letter(6, 3*time.Hour, "patch-denied", "shop", "gone"), letter(7, 2*time.Hour, "patch-denied", "shop", "twice"),
		letter(8, time.Hour, "patch-denied", "shop", "twice"), letter(9, time.Minute, "patch-denied", "bank", "db"),
		letter(10, time.Second, "patch-denied", "bank", "done"),
	}}
	box.letters[4].Seq = box.letters[3].Seq
	box.letters[6].Replayed = historyNow
	box.refused = map[uint64]error{
		3: &events.RejectError{Reason: "malformed", Err: errors.New("no")},
		4: fmt.Errorf("reading: %w", events.ErrSuperseded), 6: fmt.Errorf("reading: %w", events.ErrNotFound),
	}
	return box
}

func TestDeadLettersAreReplayedByIDAndByFilter(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options ReplayOptions
		want    []uint64
		// says is a part of the output, and fails a part of the error.
		says, fails string
	}{
		{"by id, also one that was replayed", ReplayOptions{IDs: []uint64{8, 10}}, []uint64{8, 10}, "The actuator takes these events again", ""},
		{"all", ReplayOptions{All: true}, []uint64{8, 9}, "7   patch-denied  keyturn.v1.demo.secret.shop.twice  with 8, which has the same event", ""},
		{"by reason", ReplayOptions{Reason: "malformed"}, nil, "no: it cannot be acted on: malformed: no", ""},
		{"by namespace", ReplayOptions{Namespace: "bank"}, []uint64{9}, "asked for", ""},
		{"since", ReplayOptions{Since: "90m"}, []uint64{8, 9}, "asked for", ""},
		{"since and by namespace", ReplayOptions{Since: "90m", Namespace: "shop"}, []uint64{8}, "asked for", ""},
		{"a dry run", ReplayOptions{All: true, DryRun: true}, nil, "Nothing was requested: --dry-run.", ""},
		{"one with a later event", ReplayOptions{IDs: []uint64{4, 9}}, []uint64{9}, "no: a later event of the source has taken its place", "1 of 2 dead letters cannot be replayed"},
		{"one of a source that is gone", ReplayOptions{IDs: []uint64{6}}, nil, "no: the stream has no event of the source any more", "1 of 1"},
		{"an unknown id", ReplayOptions{IDs: []uint64{9, 5}}, nil, "", "there is no dead letter 5"},
		{"none that fits", ReplayOptions{Reason: "oversized"}, nil, "There are no such dead letters", ""},
		{"none named", ReplayOptions{DryRun: true}, nil, "", "no dead letters are named"},
		{"not a time", ReplayOptions{Since: "yesterday"}, nil, "", "--since"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			box := newLetterBox()
			var out bytes.Buffer
			err := Replay(t.Context(), tt.options, box, historyNow, &out)
			if diff := cmp.Diff(tt.want, box.replayed); diff != "" {
				t.Errorf("replayed (-want +got):\n%s", diff)
			}
			if !strings.Contains(out.String(), tt.says) {
				t.Errorf("got\n%swant %q in it", &out, tt.says)
			}
			if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("got the error %v, want %q in it", err, tt.fails)
			}
		})
	}
}

func TestAUserWhoMayNotAskForAReplayIsTold(t *testing.T) {
	box := newLetterBox()
	box.failure = nats.ErrNoResponders
	err := Replay(t.Context(), ReplayOptions{All: true}, box, historyNow, &bytes.Buffer{})
	if !errors.Is(err, nats.ErrNoResponders) || !strings.Contains(err.Error(), "--replay-creds") {
		t.Errorf("got %v, want that the user may not, and which flag", err)
	}
}

func TestALetterThatCannotBeDecidedNowKeepsNoOtherFromItsReplay(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		says string
	}{
		{"a server is behind", fmt.Errorf("reading: %w", events.ErrBehind), "9   patch-denied  keyturn.v1.demo.secret.bank.db     not now: the server that answered is behind the stream"},
		{"the stream does not answer", nats.ErrTimeout, "not now: nats: timeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			box := newLetterBox()
			box.refused[3], box.refused[9] = tt.err, tt.err
			box.letters[6].Replayed = time.Time{}
			var out bytes.Buffer
			err := Replay(t.Context(), ReplayOptions{All: true}, box, historyNow, &out)
			if diff := cmp.Diff([]uint64{8, 10}, box.replayed); diff != "" {
				t.Errorf("replayed (-want +got):\n%s", diff)
			}
			if !strings.Contains(out.String(), tt.says) || !strings.Contains(out.String(), "The actuator takes these events again") {
				t.Errorf("got\n%swant %q in it, and what comes next", &out, tt.says)
			}
			if err == nil || err.Error() != "2 of 7 dead letters cannot be replayed now: try again later" {
				t.Errorf("got the error %v, want one line that counts them", err)
			}
		})
	}
}

func TestAReplayEndsIfTheStreamAnswersForNoLetter(t *testing.T) {
	box := newLetterBox()
	for _, letter := range box.letters {
		box.refused[letter.ID] = nats.ErrTimeout
	}
	err := Replay(t.Context(), ReplayOptions{All: true}, box, historyNow, &bytes.Buffer{})
	if box.looked != patience || err == nil || !strings.Contains(err.Error(), "0 asked for, ended at dead letter 6: the stream does not answer") {
		t.Errorf("got %v after %d letters, want the end after %d, and where", err, box.looked, patience)
	}
}

func TestAReplayThatEndsNamesTheLetter(t *testing.T) {
	box := newLetterBox()
	box.failure = nats.ErrConnectionClosed
	err := Replay(t.Context(), ReplayOptions{IDs: []uint64{9}}, box, historyNow, &bytes.Buffer{})
	if !errors.Is(err, nats.ErrConnectionClosed) || !strings.Contains(err.Error(), "0 asked for, ended at dead letter 9") {
		t.Errorf("got %v, want at which letter it ended", err)
	}
}

func TestEachLetterOfAnEventNamesTheOneThatIsReplayed(t *testing.T) {
	box := newLetterBox()
	third := box.letters[4]
	third.ID = 11
	box.letters = append(box.letters, third)
	var out bytes.Buffer
	err := Replay(t.Context(), ReplayOptions{IDs: []uint64{7, 8, 11}}, box, historyNow, &out)
	if err != nil || strings.Count(out.String(), "with 11, which has the same event") != 2 {
		t.Errorf("got %v and\n%swant two letters that name the third", err, &out)
	}
}

func TestLettersOfAnEventThatIsRefusedAskForNothing(t *testing.T) {
	box := newLetterBox()
	second := box.letters[2]
	second.ID = 11
	box.letters = append(box.letters, second)
	box.refused[second.ID] = box.refused[box.letters[2].ID]
	var out bytes.Buffer
	err := Replay(t.Context(), ReplayOptions{IDs: []uint64{6, 11}}, box, historyNow, &out)
	if err == nil || strings.Contains(out.String(), "takes these events again") {
		t.Errorf("got %v and\n%swant that nothing was asked for", err, &out)
	}
}
