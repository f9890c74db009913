package inspect

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// Clusters lists the clusters in a stream.
func Clusters(ctx context.Context, reader *events.Reader, view View, out io.Writer) error {
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
func writeMembers(out io.Writer, view View, members []events.Member) error {
	if done, err := view.Format.Encode(out, append([]events.Member{}, members...)); done || err != nil {
		return err
	}
	return view.WriteTable(out, func(row func(...any)) { addMembers(row, members) })
}

func addMembers(row func(cells ...any), members []events.Member) {
	row("CLUSTER", "LAST EVENT", "BEHIND", "FOREIGN", "UID")
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
		row(m.Cluster, last, behind, foreign, uid)
	}
}

// aboutForeign returns how many events the cluster's server has delivered on subjects of other clusters. The hub does not pass them on.
func aboutForeign(m events.Member) string {
	switch {
	case !m.Checked:
		return "not checked"
	case len(m.ForeignClusters) > 0:
		return fmt.Sprintf("%d (of %s)", m.Foreign, strings.Join(m.ForeignClusters, ", "))
	}
	return strconv.FormatUint(m.Foreign, 10)
}
