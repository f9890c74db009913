package inspect

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// deadLetters reads dead letters: an events.Bus.
type deadLetters interface {
	DeadLetters(ctx context.Context, limit int) ([]events.DeadLetter, error)
}

// DeadLetters lists the newest dead letters, without the events that they keep.
func DeadLetters(ctx context.Context, from deadLetters, limit int, view View, out io.Writer) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	letters, err := from.DeadLetters(bounded, limit)
	if err != nil {
		return fmt.Errorf("reading the dead letters: %w", err)
	}
	if done, err := view.Format.Encode(out, append([]events.DeadLetter{}, letters...)); done || err != nil {
		return err
	}
	if len(letters) == 0 {
		fmt.Fprintln(out, "There are no dead letters.")
		return nil
	}
	return view.WriteTable(out, func(row func(...any)) { addLetters(row, letters) })
}

func addLetters(row func(cells ...any), letters []events.DeadLetter) {
	row("TIME", "REASON", "SUBJECT", "ERROR")
	for _, letter := range letters {
		row(letter.Time.Format(time.RFC3339), letter.Reason, letter.Subject, letter.Error)
	}
}
