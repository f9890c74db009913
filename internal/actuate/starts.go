package actuate

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// startsTimeout bounds the reading of Jobs in one namespace.
const startsTimeout = 30 * time.Second

// starts finds what others have started Jobs for where nothing may be written on CronJobs. Their outcomes may be on other streams, but the Jobs say
// it.
type starts struct {
	clients workload.Clients
	// namespaces are Options.Namespaces.
	namespaces []string
	index      *inventory.Index
	log        *slog.Logger
}

// resume reads the Jobs once, if a CronJob needs that.
func (s *starts) resume(ctx context.Context) {
	if !s.clients.Unrecorded || !slices.ContainsFunc(s.index.All(), (*workload.Workload).NeedsStarts) {
		return
	}
	for _, namespace := range kube.Listed(s.namespaces) {
		s.read(ctx, namespace)
	}
}

func (s *starts) read(ctx context.Context, namespace string) {
	bounded, cancel := context.WithTimeout(ctx, startsTimeout)
	defer cancel()
	found, err := workload.ReadStarts(bounded, s.clients, namespace)
	if err != nil && ctx.Err() == nil && !kube.IsMissingRight(err, "list") {
		s.log.WarnContext(ctx, "jobs not readable; one that another leader has started may be started once more", "namespace", namespace, "err", err)
	}
	for _, w := range s.index.All() {
		if started, ok := found[w.ID.UID]; ok {
			s.index.KeepStarts(w.Key(), started)
		}
	}
}
