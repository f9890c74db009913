package inspect

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
)

// timeout bounds how long a command waits for a connection to NATS, and for a response.
const timeout = 10 * time.Second

// Streams selects the streams to read.
type Streams struct {
	// Connect is how to reach NATS.
	Connect bus.ConnectOptions
	// Cluster is the cluster whose streams to read. Required.
	Cluster string
	// Stream is a stream with the events of many clusters, to be read instead. Empty means the streams of Cluster.
	Stream string
	// Further are options of the connection that take precedence over Connect.
	Further []nats.Option
}

// OpenReader connects to the streams to read. The returned function disconnects.
func (s *Streams) OpenReader(ctx context.Context) (*bus.Reader, func(), error) {
	if s.Stream == "" {
		b, disconnect, err := s.OpenBus(ctx)
		if err != nil {
			return nil, nil, err
		}
		return &b.Reader, disconnect, nil
	}
	return open(ctx, s, func(ctx context.Context, connection *nats.Conn) (*bus.Reader, error) {
		return bus.OpenFleet(ctx, connection, s.Stream)
	})
}

// OpenBus connects to the streams of the cluster. The returned function disconnects.
func (s *Streams) OpenBus(ctx context.Context) (*bus.Bus, func(), error) {
	return open(ctx, s, func(ctx context.Context, connection *nats.Conn) (*bus.Bus, error) {
		return bus.Open(ctx, connection, s.Cluster, nil)
	})
}

// open connects, and opens something over the connection.
func open[T any](ctx context.Context, s *Streams, over func(context.Context, *nats.Conn) (*T, error)) (*T, func(), error) {
	if err := events.ValidateCluster(s.Cluster); err != nil {
		return nil, nil, fmt.Errorf("--cluster: %w", err)
	}
	options := s.Connect
	options.Cluster, options.Role, options.Name = s.Cluster, "actuator", "keyturn-cli"
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connection, err := bus.Connect(bounded, options, s.Further...)
	if err != nil {
		return nil, nil, err
	}
	opened, err := over(bounded, connection)
	if err != nil {
		connection.Close()
		return nil, nil, err
	}
	return opened, connection.Close, nil
}

// Clusters lists the clusters in a stream.
func Clusters(ctx context.Context, reader *bus.Reader, view View, out io.Writer) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	members, err := reader.Members(bounded)
	if err != nil {
		return err
	}
	return writeMembers(out, view, members)
}

// writeMembers writes the clusters; a table has a line for each. Several UIDs behind one name are different clusters that were configured with
// the same name.
func writeMembers(out io.Writer, view View, members []bus.Member) error {
	if done, err := view.Format.Encode(out, append([]bus.Member{}, members...)); done || err != nil {
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
	return view.WriteTable(out, rows)
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

// DeadLetters lists the newest dead letters, without the events that they keep.
func DeadLetters(ctx context.Context, b *bus.Bus, limit int, view View, out io.Writer) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	letters, err := b.DeadLetters(bounded, limit)
	if err != nil {
		return fmt.Errorf("reading the dead letters: %w", err)
	}
	return writeLetters(out, view, letters)
}

func writeLetters(out io.Writer, view View, letters []events.DeadLetter) error {
	if done, err := view.Format.Encode(out, append([]events.DeadLetter{}, letters...)); done || err != nil {
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
	return view.WriteTable(out, rows)
}
