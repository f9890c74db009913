package inspect

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// CompareOptions select what to compare.
type CompareOptions struct {
	// Cluster is the cluster whose decisions to read.
	Cluster string
	// Namespace is the only namespace whose workloads to compare. Empty means those of Namespaces.
	Namespace string
	// Namespaces are the namespaces that the actuator serves. Empty means all.
	Namespaces []string
	// Since is how far back to compare: a duration, or a time in RFC 3339. Empty means everything that the stream keeps.
	Since string
	// Jobs says that the actuator recreates Jobs.
	Jobs bool
	// Clients read the workloads.
	Clients workload.Clients
}

// Comparison compares what Keyturn would have rolled with what Reloader has rolled. Use NewComparison to create one.
type Comparison struct {
	query      events.HistoryQuery
	kinds      workload.Kinds
	clients    workload.Clients
	namespaces []string
}

// NewComparison validates the options and returns a comparison.
func NewComparison(options CompareOptions, now time.Time) (*Comparison, error) {
	history := HistoryOptions{Cluster: options.Cluster, Namespace: options.Namespace, Since: options.Since, Output: "table"}
	query, err := history.query(now)
	if err != nil {
		return nil, err
	}
	namespaces := options.Namespaces
	if options.Namespace != "" || len(namespaces) == 0 {
		namespaces = []string{options.Namespace}
	}
	kinds := append(workload.BuiltIn(), workload.ArgoRollout())
	if options.Jobs {
		kinds = append(kinds, workload.Job())
	}
	return &Comparison{query: query, kinds: kinds, clients: options.Clients, namespaces: namespaces}, nil
}

// Write writes a line for each workload and source for which one of the two has rolled, or would have, and then the number of
// lines by who rolled.
func (c *Comparison) Write(ctx context.Context, reader *events.Reader, out io.Writer) error {
	decided, err := readDecisions(ctx, reader, c.query)
	if err != nil {
		return err
	}
	var rows []comparedRow
	for _, kind := range c.kinds {
		for _, namespace := range c.namespaces {
			err := c.each(ctx, kind, namespace, func(w events.Workload, mark reloaderMark) {
				rows = append(rows, decided.compare(w, mark, c.query.Since)...)
			})
			switch {
			case apierrors.IsForbidden(err):
				// Permission is not required for a kind that is ignored.
				fmt.Fprintf(out, "Not compared, because there is no permission to list them: %s\n", kind.Resource)
			case err != nil:
				return err
			}
		}
	}
	slices.SortFunc(rows, comparedRow.compare)
	return writeCompared(out, rows)
}

// each calls a function for each workload of a kind in a namespace. For a custom kind that is not served, or without permission for it, there are
// none.
func (c *Comparison) each(ctx context.Context, kind workload.Kind, namespace string, do func(events.Workload, reloaderMark)) error {
	options := metav1.ListOptions{Limit: 500}
	for {
		list, err := kind.Objects(c.clients, namespace).List(ctx, options)
		if kind.Component != "" && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", kind.Resource, err)
		}
		err = meta.EachListItem(list, func(obj runtime.Object) error {
			if about, template, ok := kind.Template(obj); ok {
				do(events.Workload{Kind: kind.Name, Namespace: about.Namespace, Name: about.Name}, markOf(about, template))
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("reading the list of %s: %w", kind.Resource, err)
		}
		page, err := meta.ListAccessor(list)
		if err != nil {
			return fmt.Errorf("reading the list of %s: %w", kind.Resource, err)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func writeCompared(out io.Writer, rows []comparedRow) error {
	count := make(map[who]int)
	err := View{}.WriteTable(out, func(row func(...any)) {
		row("ROLLED BY", "NAMESPACE", "WORKLOAD", "SOURCE", "WHY")
		for _, r := range rows {
			count[r.who]++
			row(r.who, r.workload.Namespace, r.workload, r.source, r.why)
		}
	})
	if err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	var counts []string
	for _, who := range []who{both, keyturnOnly, reloaderOnly, unclear} {
		counts = append(counts, fmt.Sprintf("%s: %d", who, count[who]))
	}
	_, err = fmt.Fprintf(out, "\n%s\n", strings.Join(counts, ", "))
	return err
}
