package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/keyturn/keyturn/tests/testkit/running"
)

const (
	// StartTimeout bounds the wait for one server. A second or two is usual; a loaded machine needs more. The time in which the machine stands still
	// does not count, see [running.WithTimeout].
	StartTimeout = 4 * time.Minute
	// StopGrace is how long a server may take to end by itself.
	StopGrace = 3 * time.Second
)

// MakeDir creates the folder for a server's files, with its parents, and returns its absolute path. Empty means a temporary
// folder.
func MakeDir(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "keyturn-testbed-")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// WaitFor waits until a probe of the process succeeds. It gives up when the process ends or after [StartTimeout], and its error
// has the end of the process's log.
func (p *Process) WaitFor(ctx context.Context, probe func(context.Context) error) error {
	ctx, stop := running.WithTimeout(ctx, StartTimeout)
	defer stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s: %w\n%s", p.name, ErrExited, p.Tail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", p.name, errors.Join(context.Cause(ctx), err), p.Tail())
		case <-ticker.C:
		}
	}
}
