package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/events"
)

// history is the command that lists changes and their outcomes.
type history struct {
	source, workload, namespace, since, output string
	clusters, verbs                            []string
	allClusters, follow                        bool
	now                                        func() time.Time
	// traceURL comes from the settings.
	traceURL string
}

func newHistoryCommand(s *settings) *cobra.Command {
	h := &history{now: time.Now}
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List changes and their outcomes.",
		Example: "  actuator history --cluster prod --since 2h\n" +
			"  actuator history --cluster prod -n shop --workload deployment/web --verb failed,held\n" +
			"  actuator history --cluster prod --source secret/db -n shop --follow\n" +
			"  actuator history --cluster hub --stream FLEET --clusters prod-eu,prod-us --verb rotated,failed",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := h.query(s.actuator.Cluster)
			if err := errors.Join(err, s.validateTraceURL()); err != nil {
				return err
			}
			h.traceURL = s.actuator.TraceURL
			reader, closeReader, err := s.openReader(cmd.Context())
			if err != nil {
				return err
			}
			defer closeReader()
			return h.run(cmd.Context(), reader, query, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&h.source, "source", "", "only changes of this `source`, such as secret/db, configmap/app or openbao/<store>/<namespace>/<mount>/<path>")
	flags.StringVar(&h.workload, "workload", "", "only outcomes of this `workload`, such as deployment/web")
	flags.StringVarP(&h.namespace, "namespace", "n", "", "only events in this `namespace`; empty means all")
	flags.StringVar(&h.since, "since", "24h", "start of the list: a `duration` back from now, or a time such as 2006-01-02T15:04:05Z; empty means all that the stream keeps")
	flags.StringSliceVar(&h.verbs, "verb", nil, "only events with one of these `verbs`: changed, rotated, started, completed, failed, skipped, held, ...")
	flags.StringSliceVar(&h.clusters, "clusters", nil, "only events of these `clusters`; empty means --cluster")
	flags.BoolVar(&h.allClusters, "all-clusters", false, "events of all clusters in the stream")
	flags.BoolVarP(&h.follow, "follow", "f", false, "keep listing new events as they happen")
	flags.StringVarP(&h.output, "output", "o", "table", "output `format`: table, or json with one CloudEvent per line")
	s.addTraceURL(flags)
	s.addStream(flags)
	return cmd
}

// query returns the query that the flags describe.
func (h *history) query(cluster string) (events.HistoryQuery, error) {
	query := events.HistoryQuery{Clusters: []string{cluster}, Namespace: h.namespace, Follow: h.follow}
	switch {
	case h.allClusters && len(h.clusters) > 0:
		return query, errors.New("--clusters: set together with --all-clusters, want one of them")
	case h.allClusters:
		query.Clusters = nil
	case len(h.clusters) > 0:
		query.Clusters = h.clusters
	}
	for _, name := range h.clusters {
		if err := events.ValidateCluster(name); err != nil {
			return query, fmt.Errorf("--clusters: %w", err)
		}
	}
	switch {
	case h.source != "" && h.workload != "":
		return query, errors.New("--workload: set together with --source, want one of them")
	case h.output != "table" && h.output != "json":
		return query, fmt.Errorf("--output: %q, want table or json", h.output)
	case h.source != "":
		source, err := events.ParseSource(h.source)
		if err != nil {
			return query, fmt.Errorf("--source: %w", err)
		}
		query.Kind, query.Name = source.Kind, source.Name
	case h.workload != "":
		kind, name, ok := strings.Cut(h.workload, "/")
		if !ok || kind == "" || name == "" {
			return query, fmt.Errorf("--workload: %q, want <kind>/<name> such as deployment/web", h.workload)
		}
		query.Kind, query.Name = events.KindRollout, kind+"-"+name
	}
	if h.since == "" {
		return query, nil
	}
	if ago, err := time.ParseDuration(h.since); err == nil && ago >= 0 {
		query.Since = h.now().Add(-ago)
		return query, nil
	}
	var err error
	if query.Since, err = time.Parse(time.RFC3339, h.since); err != nil {
		return query, fmt.Errorf("--since: %q, want a duration such as 2h30m or a time such as 2006-01-02T15:04:05Z", h.since)
	}
	return query, nil
}

func (h *history) run(ctx context.Context, reader *events.Reader, query events.HistoryQuery, out io.Writer) error {
	if h.output == "table" {
		fmt.Fprintf(out, historyLine, "TIME", "CLUSTER", "NAMESPACE", "OBJECT", "EVENT", "ABOUT")
	}
	return reader.History(ctx, query, func(stored events.Stored) error {
		switch {
		case !h.wants(stored):
			return nil
		case h.output == "json":
			return writeJSON(out, stored)
		}
		return h.write(out, stored)
	})
}

// wants reports whether an event can be read and has one of the verbs.
func (h *history) wants(stored events.Stored) bool {
	return stored.Err == nil && (len(h.verbs) == 0 || slices.Contains(h.verbs, verbOf(stored)))
}

func writeJSON(out io.Writer, stored events.Stored) error {
	line, err := json.Marshal(stored.Event)
	if err != nil {
		return fmt.Errorf("writing the event %s: %w", stored.Event.ID(), err)
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}

// historyLine is too narrow for the longest names, so that each line can be written at once.
const historyLine = "%-20s  %-12s  %-16s  %-32s  %-9s  %s\n"

// verbOf returns the last word of the type before the version.
func verbOf(stored events.Stored) string {
	parts := strings.Split(stored.Event.Type(), ".")
	return parts[max(len(parts)-2, 0)]
}

// write writes a line about an event. It skips events of another version and events on the wrong subject, which are dead-lettered.
func (h *history) write(out io.Writer, stored events.Stored) error {
	at := stored.Event.Time().UTC().Format(time.RFC3339)
	if o, err := stored.Outcome(); err == nil {
		return writeLine(out, at, o.Cluster, o.Workload.Namespace, o.Workload.String(), verbOf(stored), aboutOutcome(o), h.trace(o.Trace))
	}
	if c, err := stored.Change(); err == nil {
		return writeLine(out, at, c.Cluster, c.Source.Namespace, c.Source.String(), verbOf(stored), aboutChange(c), h.trace(c.Trace))
	}
	if c, err := stored.Claim(); err == nil {
		return writeLine(out, at, c.Cluster, "", "cluster", verbOf(stored), join("uid "+c.UID, replacing(c)))
	}
	return nil
}

func writeLine(out io.Writer, at, cluster, namespace, object, verb string, about ...string) error {
	_, err := fmt.Fprintf(out, historyLine, at, cluster, namespace, object, verb, join(about...))
	return err
}

func aboutOutcome(outcome events.Outcome) string {
	sources := make([]string, 0, len(outcome.Sources))
	for _, source := range outcome.Sources {
		sources = append(sources, source.Source)
	}
	return join(outcome.Reason, strings.Join(sources, ", "), outcome.Message)
}

func aboutChange(change events.Change) string {
	var parts []string
	if len(change.Changed) > 0 {
		parts = append(parts, "keys "+strings.Join(change.Changed, ", "))
	}
	if change.Cause != nil {
		parts = append(parts, "by "+change.Cause.String())
	}
	if change.Store != nil {
		parts = append(parts, "revision "+change.Store.Revision, change.Store.By)
	}
	if change.Status != nil {
		parts = append(parts, change.Status.Reason)
	}
	return join(parts...)
}

// replacing names the cluster that owned the name before.
func replacing(claim events.Claim) string {
	if claim.Replaces == "" {
		return ""
	}
	return "replaces " + claim.Replaces
}

// trace returns the URL of the trace, or its ID if there is no traceURL.
func (h *history) trace(trace events.TraceContext) string {
	id := trace.ID()
	if id == "" {
		return ""
	}
	return "trace " + cmp.Or(trace.Link(h.traceURL), id)
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}
