package embedded

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"
)

// removeSingle removes the streams of a single server from a store that one of several is to use, and reports whether there were any. A
// server of a cluster that finds streams which the cluster does not know neither takes them over nor lets go of them: the cluster's own
// streams of these names then lack messages. A store of a cluster has the state of its meta group, whatever account that is in.
func removeSingle(storeDir string) (bool, error) {
	root := filepath.Join(storeDir, server.JetStreamStoreDir)
	if meta, err := filepath.Glob(filepath.Join(root, "*", "_js_", "_meta_")); err != nil || len(meta) > 0 {
		return false, err
	}
	streams, err := filepath.Glob(filepath.Join(root, "*", "streams", "*"))
	if err != nil || len(streams) == 0 {
		return false, err
	}
	if err := os.RemoveAll(root); err != nil {
		return false, fmt.Errorf("removing the streams of a single server: %w", err)
	}
	return true, nil
}
