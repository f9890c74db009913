package inspect

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

// lettersFunc is a function that implements deadLetters.
type lettersFunc func(limit int) ([]events.DeadLetter, error)

func (f lettersFunc) DeadLetters(_ context.Context, limit int) ([]events.DeadLetter, error) {
	return f(limit)
}

func TestDeadLetterLines(t *testing.T) {
	letter := events.DeadLetter{Time: historyNow, Reason: "malformed", Subject: "keyturn.v1.demo.secret.shop.db", Error: "malformed: no"}
	tests := []struct {
		name    string
		letters []events.DeadLetter
		want    string
	}{
		{"none", nil, "There are no dead letters.\n"},
		{"one", []events.DeadLetter{letter}, `TIME                  REASON     SUBJECT                         ERROR
2026-03-14T15:09:26Z  malformed  keyturn.v1.demo.secret.shop.db  malformed: no
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			from := lettersFunc(func(limit int) ([]events.DeadLetter, error) {
				if limit != 3 {
					t.Errorf("the limit is %d, want 3", limit)
				}
				return test.letters, nil
			})
			if err := DeadLetters(t.Context(), from, 3, View{}, &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("encoded, without the event", func(t *testing.T) {
		full := letter
		full.Data = []byte("what was published")
		var out bytes.Buffer
		from := lettersFunc(func(int) ([]events.DeadLetter, error) { return []events.DeadLetter{full}, nil })
		if err := DeadLetters(t.Context(), from, 3, View{Format: YAML}, &out); err != nil {
			t.Fatal(err)
		}
		want := "- error: 'malformed: no'\n  reason: malformed\n  seq: 0\n  subject: keyturn.v1.demo.secret.shop.db\n  time: \"2026-03-14T15:09:26Z\"\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("as YAML (-want +got):\n%s", diff)
		}
	})
	t.Run("an error says what was being done", func(t *testing.T) {
		failure := errors.New("no")
		err := DeadLetters(t.Context(), lettersFunc(func(int) ([]events.DeadLetter, error) { return nil, failure }), 3, View{}, &bytes.Buffer{})
		if !errors.Is(err, failure) || err.Error() != "reading the dead letters: no" {
			t.Errorf("got %v", err)
		}
	})
}
