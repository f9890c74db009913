package actuate

import (
	"context"
	"log/slog"
	"strings"

	"github.com/keyturn/keyturn/internal/workload"
)

// problems reports what is wrong with the annotations of workloads, once for each wording.
type problems struct {
	log      *slog.Logger
	kube     *kubeEvents
	reported map[workload.Key]string
}

func newProblems(log *slog.Logger, kube *kubeEvents) *problems {
	return &problems{log: log, kube: kube, reported: make(map[workload.Key]string)}
}

// report logs the problems of a workload and writes a Kubernetes Event, unless that was done before.
func (p *problems) report(ctx context.Context, w *workload.Workload) {
	texts := make([]string, 0, len(w.Problems))
	for _, problem := range w.Problems {
		texts = append(texts, problem.Error())
	}
	text := strings.Join(texts, "; ")
	if p.reported[w.Key()] == text {
		return
	}
	if text == "" {
		p.forget(w.Key())
		return
	}
	p.reported[w.Key()] = text
	p.log.WarnContext(ctx, "invalid annotation", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", text)
	p.kube.problem(ctx, w.ID, text)
}

// forget drops a workload that is gone.
func (p *problems) forget(key workload.Key) { delete(p.reported, key) }
