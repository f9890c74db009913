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
	fmt.Fprintln(table, "CLUSTER\tLAST EVENT\tBEHIND\tFOREIGN\tUID")
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
			foreign = aboutForeign(m)
		}
		if len(m.UIDs) > 0 {
			uid = strings.Join(m.UIDs, ", ")
		}
		if len(m.UIDs) > 1 {
			uid += " (this name is claimed by more than one cluster)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", m.Cluster, last, behind, foreign, uid)
	}
	return table.Flush()
}

// aboutForeign says what the cluster's server has delivered on subjects of others, which the hub does not pass on.
func aboutForeign(m events.Member) string {
	switch {
	case !m.Checked:
		return "not checked"
	case len(m.ForeignClusters) > 0:
		return fmt.Sprintf("%d (of %s)", m.Foreign, strings.Join(m.ForeignClusters, ", "))
	}
	return strconv.FormatUint(m.Foreign, 10)
}
