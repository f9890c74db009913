package inspect

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// Clusters lists the clusters in a stream, a line each.
func Clusters(ctx context.Context, reader *events.Reader, out io.Writer) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	members, err := reader.Members(bounded)
	if err != nil {
		return err
	}
	return writeMembers(out, members)
}

// writeMembers writes a line for each cluster. Several UIDs behind one name are clusters that were configured with the same name.
func writeMembers(out io.Writer, members []events.Member) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLUSTER\tLAST EVENT\tBEHIND\tUID")
	for _, m := range members {
		last, behind, uid := "-", "-", "-"
		if !m.Last.IsZero() {
			last = m.Last.UTC().Format(time.RFC3339)
		}
		if m.Sourced {
			behind = strconv.FormatUint(m.Lag, 10)
			if !m.Reached {
				behind = "not reached"
			}
		}
		if len(m.UIDs) > 0 {
			uid = strings.Join(m.UIDs, ", ")
		}
		if len(m.UIDs) > 1 {
			uid += " (this name is claimed by more than one cluster)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.Cluster, last, behind, uid)
	}
	return table.Flush()
}
