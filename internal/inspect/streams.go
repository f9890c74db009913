package inspect

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
)

// timeout bounds the wait of a command for a response from NATS.
const timeout = 10 * time.Second

// Clusters lists the clusters in a stream.
func Clusters(ctx context.Context, reader *bus.Reader, format Format, out io.Writer) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	members, err := reader.Members(bounded)
	if err != nil {
		return err
	}
	return writeMembers(out, format, members)
}

// writeMembers writes the clusters; a table has a line for each. Several UIDs with one name are different clusters with the same configured name.
func writeMembers(out io.Writer, format Format, members []bus.Member) error {
	if done, err := format.Encode(out, append([]bus.Member{}, members...)); done {
		return err
	}
	rows := [][]any{{"CLUSTER", "LAST EVENT", "BEHIND", "FOREIGN", "UID"}}
	for _, m := range members {
		last, behind, foreign, uid := "-", "-", "-", "-"
		if !m.Last.IsZero() {
			last = m.Last.UTC().Format(time.RFC3339)
		}
		if m.Sourced {
			behind = strconv.FormatUint(m.Lag, 10)
			if !m.Reached {
				behind = "not reached"
			}
			foreign = foreignEvents(m)
		}
		if len(m.UIDs) > 0 {
			uid = strings.Join(m.UIDs, ", ")
		}
		if len(m.UIDs) > 1 {
			uid += " (this name is claimed by more than one cluster)"
		}
		rows = append(rows, []any{m.Cluster, last, behind, foreign, uid})
	}
	return format.WriteTable(out, rows)
}

// foreignEvents returns how many events the cluster's server has delivered on subjects of other clusters. The hub does not pass them on.
func foreignEvents(m bus.Member) string {
	switch {
	case !m.Checked:
		return "not checked"
	case len(m.ForeignClusters) > 0:
		return fmt.Sprintf("%d (of %s)", m.Foreign, strings.Join(m.ForeignClusters, ", "))
	}
	return strconv.FormatUint(m.Foreign, 10)
}

// DeadLetters lists the newest dead letters, without their events.
func DeadLetters(ctx context.Context, b *bus.Bus, limit int, format Format, out io.Writer) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	letters, err := b.DeadLetters(bounded, limit)
	if err != nil {
		return fmt.Errorf("reading the dead letters: %w", err)
	}
	return writeLetters(out, format, letters)
}

func writeLetters(out io.Writer, format Format, letters []events.DeadLetter) error {
	if done, err := format.Encode(out, append([]events.DeadLetter{}, letters...)); done {
		return err
	}
	if len(letters) == 0 {
		fmt.Fprintln(out, "There are no dead letters.")
		return nil
	}
	rows := [][]any{{"TIME", "REASON", "SUBJECT", "ERROR"}}
	for _, letter := range letters {
		rows = append(rows, []any{letter.Time.Format(time.RFC3339), letter.Reason, letter.Subject, letter.Error})
	}
	return format.WriteTable(out, rows)
}
