package events

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events/embedded"
)

// BenchmarkPublish measures what it costs to sync each message to disk: see syncInterval in the package embedded.
func BenchmarkPublish(b *testing.B) {
	for name, sync := range map[string]string{"synced now and then": "10s", "synced always": "always"} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			config := filepath.Join(dir, "nats.conf")
			must(b, os.WriteFile(config, []byte("jetstream { sync: "+sync+" }"), 0o600))
			server, err := embedded.Start(embedded.Options{StoreDir: dir, ConfigFile: config}, nil)
			must(b, err)
			defer server.Shutdown()
			nc, err := Connect(b.Context(), ConnectOptions{Cluster: testCluster}, server.ClientOption())
			must(b, err)
			defer nc.Close()
			js, err := jetstream.New(nc)
			must(b, err)
			must(b, Declare(b.Context(), js, 1))
			bus, err := Open(b.Context(), nc, testCluster, nil)
			must(b, err)
			for i := 0; b.Loop(); i++ {
				if _, err := bus.PublishChange(b.Context(), version(fmt.Sprintf("s%d", i), "1"), 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
