package embedded

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"
)

// removeSingle removes the streams of a single server from a store that a server of a cluster is going to use, and reports whether there were
// any. If a server of a cluster finds streams that the cluster does not know, it neither adopts nor drops them, and the cluster's own streams
// of the same names then lack messages. The store of a cluster is recognized by the state of its meta group, in whatever account that is.
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
