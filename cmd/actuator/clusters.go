package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/events"
)

func newClustersCommand(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "clusters",
		Short:   "List the clusters in a stream, with replication lag and claimed identity.",
		Example: "  actuator clusters --cluster hub --stream FLEET",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reader, closeReader, err := s.openReader(cmd.Context())
			if err != nil {
				return err
			}
			defer closeReader()
			bounded, cancel := context.WithTimeout(cmd.Context(), commandTimeout)
			defer cancel()
			members, err := reader.Members(bounded)
			if err != nil {
				return err
			}
			return writeMembers(cmd.OutOrStdout(), members)
		},
	}
	s.addStream(cmd.Flags())
	return cmd
}

// writeMembers writes a line for each cluster. Two UIDs for one name mean two clusters with the same name.
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
