package openbao

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// refreshInterval is how often files that may change are looked at.
const refreshInterval = 5 * time.Second

// refresher reads files again where they have changed. Where that fails, what was read last stays.
type refresher interface{ refresh() error }

// refreshing calls the refreshers from time to time until ctx is done.
func refreshing(ctx context.Context, log *slog.Logger, refreshers []refresher) {
	failed := make([]string, len(refreshers))
	for pause(ctx, refreshInterval) {
		for i, r := range refreshers {
			text := ""
			if err := r.refresh(); err != nil {
				text = err.Error()
				if text != failed[i] {
					log.ErrorContext(ctx, "changed file cannot be read, what was read before stays", "err", err)
				}
			}
			failed[i] = text
		}
	}
}

// stamp tells versions of at most two files apart.
type stamp [2]struct {
	modified int64
	size     int64
}

func stampOf(files ...string) (stamp, error) {
	var s stamp
	for i, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return s, fmt.Errorf("reading: %w", err)
		}
		s[i].modified, s[i].size = info.ModTime().UnixNano(), info.Size()
	}
	return s, nil
}
