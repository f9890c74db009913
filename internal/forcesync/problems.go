package forcesync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/externalsecret"
)

// maxProblems is how much is logged about one ExternalSecret, in characters. Without a limit, the author of an ExternalSecret could make the log
// line arbitrarily long.
const maxProblems = 1000

// problems logs the parts of an ExternalSecret that are not readable. It logs again only if the text is different.
type problems struct {
	log    *slog.Logger
	logged map[types.NamespacedName]string
}

func newProblems(log *slog.Logger) problems {
	return problems{log: log, logged: make(map[types.NamespacedName]string)}
}

// review logs the problems of an ExternalSecret that has changed. es is nil if it was deleted.
func (p *problems) review(ctx context.Context, name types.NamespacedName, es *externalsecret.ExternalSecret) {
	if es == nil || len(es.Problems) == 0 {
		delete(p.logged, name)
		return
	}
	text := fmt.Sprintf("%.*s", maxProblems, errors.Join(es.Problems...))
	if p.logged[name] != text {
		p.logged[name] = text
		p.log.WarnContext(ctx, "externalsecret not readable", "externalsecret", name.Name, "namespace", name.Namespace, "err", text)
	}
}
