package actuate

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/keyturn/keyturn/internal/workload"
)

// maxProblems is how much is reported about one workload, in characters. Without a limit, the author of a workload could make the log line
// arbitrarily long.
const maxProblems = 1000

// problems reports what is wrong with the annotations of workloads, once for each wording, and with their controllers.
type problems struct {
	log      *slog.Logger
	kube     *kubeEvents
	reported map[workload.Key]string
	// orphans has the workloads for which it was logged that they are rolled themselves although they have a controller.
	orphans map[workload.Key]bool
}

func newProblems(log *slog.Logger, kube *kubeEvents) *problems {
	return &problems{log: log, kube: kube, reported: make(map[workload.Key]string), orphans: make(map[workload.Key]bool)}
}

// report logs the problems of a workload and writes a Kubernetes Event, unless that was done before.
func (p *problems) report(ctx context.Context, w *workload.Workload) {
	p.reportOwner(ctx, w)
	texts := make([]string, 0, len(w.Problems))
	for _, problem := range w.Problems {
		texts = append(texts, problem.Error())
	}
	text := fmt.Sprintf("%.*s", maxProblems, strings.Join(texts, "; "))
	if p.reported[w.Key()] == text {
		return
	}
	if text == "" {
		delete(p.reported, w.Key())
		return
	}
	p.reported[w.Key()] = text
	p.log.WarnContext(ctx, "invalid annotation", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", text)
	p.kube.problem(ctx, w.ID, text)
}

// reportOwner logs that a workload is rolled itself although its controller should be, which may put back what is written on it.
func (p *problems) reportOwner(ctx context.Context, w *workload.Workload) {
	if orphan := w.IsOrphan(); orphan == p.orphans[w.Key()] {
		return
	} else if !orphan {
		delete(p.orphans, w.Key())
		return
	}
	p.orphans[w.Key()] = true
	p.log.WarnContext(ctx, "controller not known; rolling the workload itself", "workload", w.ID.String(), "namespace", w.ID.Namespace,
		"controller", w.Owner.Kind+"/"+w.Owner.Name)
}

// forget drops a workload that is gone.
func (p *problems) forget(key workload.Key) {
	delete(p.reported, key)
	delete(p.orphans, key)
}
