package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
)

// HistoryOptions select events and how to write them. The fields are flags of the history command.
type HistoryOptions struct {
	// Cluster is the cluster to list, unless Clusters or AllClusters is set.
	Cluster string
	// Clusters are the clusters to list, and AllClusters lists every cluster in the stream.
	Clusters    []string
	AllClusters bool
	// Source is the only source whose changes to list, such as secret/db, and Workload the only workload whose outcomes to list, such as
	// deployment/web. Namespace and Trace, an ID, limit the list to their events. Empty means all.
	Source, Workload, Namespace, Trace string
	// Verbs are the verbs of the events to list. Empty means all.
	Verbs []string
	// Since is how far back to list: see ParseSince.
	Since string
	// Follow keeps listing events as they happen.
	Follow bool
	// Format is the output format of the events. A table, unless it is wide, omits columns that are the same in every line.
	Format Format
	// TraceURL is a template of links to traces: see events.ValidateTraceURL. If it is empty, only IDs are written.
	TraceURL string
}

// AddFlags adds the flags that select events, without flags that other commands have, too.
func (o *HistoryOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Source, "source", "",
		"only changes of this `source`, such as secret/db, configmap/app or openbao/<store>/<namespace>/<mount>/<path>")
	flags.StringVar(&o.Workload, "workload", "", "only outcomes of this `workload`, such as deployment/web")
	flags.StringVar(&o.Since, "since", "24h",
		"start of the list: a `duration` back from now, or a time such as 2006-01-02T15:04:05Z; empty means all that the stream keeps")
	flags.StringSliceVar(&o.Verbs, "verb", nil,
		"only events with one of these `verbs`: changed, rotated, started, completed, failed, skipped, held, ...")
	flags.StringSliceVar(&o.Clusters, "clusters", nil, "only events of these `clusters`; empty means --cluster")
	flags.BoolVar(&o.AllClusters, "all-clusters", false, "events of all clusters in the stream")
	flags.StringVar(&o.Trace, "trace", "", "only events of the trace with this `id`, of 32 hexadecimal digits")
}

// query validates the options and returns the query for the stream.
func (o *HistoryOptions) query(now time.Time) (bus.HistoryQuery, error) {
	query := bus.HistoryQuery{Namespace: o.Namespace, Follow: o.Follow}
	var err error
	if query.Clusters, err = o.clusters(); err != nil {
		return query, err
	}
	for _, verb := range o.Verbs {
		if !slices.Contains(events.Verbs(), events.Verb(verb)) {
			return query, fmt.Errorf("--verb: %q, want some of %q", verb, events.Verbs())
		}
	}
	switch {
	case o.Source != "" && o.Workload != "":
		return query, errors.New("--workload: set together with --source, want one of them")
	case o.Trace != "" && (len(o.Trace) != 32 || strings.Trim(o.Trace, "0123456789abcdef") != ""):
		return query, fmt.Errorf("--trace: %q, want 32 hexadecimal digits in lower case", o.Trace)
	case o.Source != "":
		source, err := events.ParseSource(o.Source)
		if err != nil {
			return query, fmt.Errorf("--source: %w", err)
		}
		query.Kind, query.Name = source.Kind, source.Name
		if source.Kind == events.KindOpenBao {
			query.Namespace = "" // A secret in a store has no namespace.
		}
	case o.Workload != "":
		w, err := WorkloadNamed(o.Workload)
		if err != nil {
			return query, fmt.Errorf("--workload: %w", err)
		}
		query.Kind, query.Name = events.KindRollout, w.Kind+"-"+w.Name
	}
	query.Since, err = ParseSince(o.Since, now)
	return query, err
}

// columns returns the columns of a table.
func (o *HistoryOptions) columns() columns {
	return columns{
		narrow: o.Format == Table, clusters: o.AllClusters || len(o.Clusters) > 1, namespaces: o.Namespace == "",
	}
}

// clusters returns the clusters to list. Nil means all.
func (o *HistoryOptions) clusters() ([]string, error) {
	if o.AllClusters && len(o.Clusters) > 0 {
		return nil, errors.New("--clusters: set together with --all-clusters, want one of them")
	}
	for _, name := range o.Clusters {
		if err := events.ValidateCluster(name); err != nil {
			return nil, fmt.Errorf("--clusters: %w", err)
		}
	}
	switch {
	case o.AllClusters:
		return nil, nil
	case len(o.Clusters) > 0:
		return o.Clusters, nil
	}
	return []string{o.Cluster}, nil
}

// ParseSince parses the value of --since: a duration back from now, or a time in RFC 3339. Zero means everything that the stream keeps.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("--since: %q, want a duration such as 2h30m or a time such as 2006-01-02T15:04:05Z", text)
	}
	return at, nil
}
