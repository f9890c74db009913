package actuate

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/workload"
)

// maxProblems is how much is reported about one workload, in characters. Without a limit, the author of a workload could make the log line
// arbitrarily long.
const maxProblems = 1000

// problems reports what is wrong with the annotations of workloads, once for each wording, and with their controllers.
type problems struct {
	*reporter
	told map[workload.Key]problem
}

// problem is what is wrong with a workload: the text is about its annotations. An orphan is rolled itself although its controller should be, which
// may put back what is written on it.
type problem struct {
	text     string
	isOrphan bool
}

// report logs the problems of a workload and writes a Kubernetes Event about its annotations, unless that was done before.
func (p *problems) report(ctx context.Context, w *workload.Workload) {
	texts := make([]string, 0, len(w.Problems))
	for _, err := range w.Problems {
		texts = append(texts, err.Error())
	}
	was, is := p.told[w.Key()], problem{text: fmt.Sprintf("%.*s", maxProblems, strings.Join(texts, "; ")), isOrphan: w.IsOrphan()}
	if is == was {
		return
	}
	p.told[w.Key()] = is
	if is.isOrphan && !was.isOrphan {
		p.log.WarnContext(ctx, "controller not known; rolling the workload itself", "workload", w.ID.String(), "namespace", w.ID.Namespace,
			"controller", w.Owner.Kind+"/"+w.Owner.Name)
	}
	if is.text != "" && is.text != was.text {
		p.log.WarnContext(ctx, "invalid annotation", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", is.text)
		p.kube.write(ctx, w.ID, corev1.EventTypeWarning, "InvalidAnnotation", is.text, nil)
	}
}

// forget drops a workload that is gone.
func (p *problems) forget(key workload.Key) { delete(p.told, key) }
