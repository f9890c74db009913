package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// CompareOptions select the decisions to compare.
type CompareOptions struct {
	// Cluster is the cluster whose decisions to read.
	Cluster string
	// Namespace is the only namespace of workloads to compare. Empty means Namespaces.
	Namespace string
	// Namespaces are the namespaces that the actuator serves. Empty means all.
	Namespaces []string
	// Since is the start of the comparison. Zero means everything that the stream keeps.
	Since time.Time
	// Jobs says that the actuator recreates Jobs.
	Jobs bool
	// Clients read the workloads.
	Clients workload.Clients
}

// Compare writes a line for each workload and source for which Keyturn or Reloader rolled, or Keyturn would have rolled, and then the numbers of
// lines by who rolled.
func Compare(ctx context.Context, options CompareOptions, reader *bus.Reader, out io.Writer) error {
	query := bus.HistoryQuery{Clusters: []string{options.Cluster}, Namespace: options.Namespace, Since: options.Since}
	decided, err := readDecisions(ctx, reader, query)
	if err != nil {
		return err
	}
	namespaces := options.Namespaces
	if options.Namespace != "" || len(namespaces) == 0 {
		namespaces = []string{options.Namespace}
	}
	kinds := append(workload.BuiltIn(), workload.ArgoRollout())
	if options.Jobs {
		kinds = append(kinds, workload.Job())
	}
	var rows []comparedRow
	for _, kind := range kinds {
		for _, namespace := range namespaces {
			list := pager.New(kind.Objects(options.Clients, namespace).List)
			err := list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
				if about, template, ok := kind.Template(object); ok {
					w := events.Workload{Kind: kind.Name, Namespace: about.Namespace, Name: about.Name}
					rows = append(rows, decided.compare(w, markOf(about, template), options.Since)...)
				}
				return nil
			})
			switch {
			case err == nil:
			case kind.Custom && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)):
				// The cluster does not serve this custom kind, or the actuator does not roll it.
			case apierrors.IsForbidden(err):
				// Permission is not required for a kind that is ignored.
				fmt.Fprintf(out, "Not compared, because there is no permission to list them: %s\n", kind.Resource)
			default:
				return fmt.Errorf("listing %s: %w", kind.Resource, err)
			}
		}
	}
	slices.SortFunc(rows, comparedRow.compare)
	return writeCompared(out, rows)
}

// rolledBy says who rolled a workload for a source, or would have.
type rolledBy string

const (
	both         rolledBy = "both"
	keyturnOnly  rolledBy = "keyturn only"
	reloaderOnly rolledBy = "reloader only"
	unclear      rolledBy = "unclear"
)

// comparedRow is the result for one workload and one source.
type comparedRow struct {
	by       rolledBy
	workload events.Workload
	source   string
	why      string
}

// compare orders rows, differences first.
func (r comparedRow) compare(other comparedRow) int {
	order := []rolledBy{keyturnOnly, reloaderOnly, unclear, both}
	return cmp.Or(
		cmp.Compare(slices.Index(order, r.by), slices.Index(order, other.by)), strings.Compare(r.workload.Namespace, other.workload.Namespace),
		strings.Compare(r.workload.String(), other.workload.String()), strings.Compare(r.source, other.source),
	)
}

func writeCompared(out io.Writer, rows []comparedRow) error {
	count := make(map[rolledBy]int)
	table := [][]any{{"ROLLED BY", "NAMESPACE", "WORKLOAD", "SOURCE", "WHY"}}
	for _, r := range rows {
		count[r.by]++
		table = append(table, []any{r.by, r.workload.Namespace, r.workload, r.source, r.why})
	}
	if err := Wide.WriteTable(out, table); err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	_, err := fmt.Fprintf(out, "\n%s: %d, %s: %d, %s: %d, %s: %d\n",
		both, count[both], keyturnOnly, count[keyturnOnly], reloaderOnly, count[reloaderOnly], unclear, count[unclear])
	return err
}

// compare returns the rows of a workload. A mark from before since does not count.
func (d *decisions) compare(w events.Workload, mark reloaderMark, since time.Time) []comparedRow {
	if mark.at.Before(since.Truncate(time.Second)) {
		mark = reloaderMark{}
	}
	sources := d.marked(w.Namespace, mark)
	for source, about := range d.of[w] {
		sources[source] = about.changed
	}
	var rows []comparedRow
	for source, changed := range sources {
		about, isDecided := d.of[w][source]
		row := comparedRow{workload: w, source: source, why: about.why}
		switch rolled := mark.rolled(source, changed); {
		case about.rolls && rolled:
			row.by = both
		case about.rolls && w.Kind == "cronjob":
			row.by, row.why = unclear, join(about.why, "Reloader starts a Job, and leaves no mark on the CronJob")
		case about.rolls && mark.hides(changed):
			row.by, row.why = unclear, join(about.why, "Reloader has rolled it for "+mark.source.String()+" since, and names no other source")
		case about.rolls && mark.isBlank() && !mark.at.Before(changed):
			row.by, row.why = unclear, join(about.why, "Reloader has written it since, and leaves no mark on what it restarts")
		case about.rolls:
			row.by = keyturnOnly
		case rolled && isDecided:
			row.by = reloaderOnly
		case rolled:
			row.by, row.why = reloaderOnly, "no decision: the workload does not opt in, or the change is none to Keyturn"
		default:
			continue
		}
		rows = append(rows, row)
	}
	return rows
}
