package actuate

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

func TestANoteWritesTheRecordAndRollsNothing(t *testing.T) {
	t.Parallel()
	makes := notes{kinds: workload.Kinds{deployments}, log: slog.New(slog.DiscardHandler), now: func() time.Time { return written }}
	w := workloadOf(t, "auto", wholeDB, nil)
	entries := map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "100", UID: "uid"}}
	finished := false
	note := makes.note(t.Context(), w, workload.Write{Rolled: entries}, func(context.Context, patchResult) { finished = true })
	if note == nil {
		t.Fatal("there is no patch")
	}
	if body := string(note.patch.Body); !strings.Contains(body, fp("b")) || strings.Contains(body, "/spec/") {
		t.Errorf("the patch is %s, want one of the record alone", body)
	}
	if note.rolls || note.background || note.key() != w.Key() {
		t.Errorf("it rolls: %t, is in the background: %t, and is of %s", note.rolls, note.background, note.key())
	}
	if note.finish(t.Context(), patchResult{}); !finished {
		t.Error("the part that has asked for it does not get the result")
	}
}

func TestThereIsNoNoteOnAKindThatIsNotRolled(t *testing.T) {
	t.Parallel()
	makes := notes{log: slog.New(slog.DiscardHandler), now: time.Now}
	if note := makes.note(t.Context(), workloadOf(t, "auto", wholeDB, nil), workload.Write{}, nil); note != nil {
		t.Errorf("there is a patch: %s", note.patch.Body)
	}
}
