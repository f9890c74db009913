package bus

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

// withTLS gives a server that is not started yet TLS, and returns the folder with the files of its certificate.
func (s *ownServer) withTLS(ca *testkit.CA) (dir string) {
	s.t.Helper()
	dir = s.t.TempDir()
	ca.Issue(s.t, dir, time.Now().Add(time.Hour))
	s.config = filepath.Join(dir, "nats.conf")
	block := `tls: { cert_file: "` + filepath.Join(dir, "tls.crt") + `", key_file: "` + filepath.Join(dir, "tls.key") + `" }`
	testkit.Must(s.t, os.WriteFile(s.config, []byte(block), 0o600))
	return dir
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	testkit.Must(t, err)
}

// A program's mount of the CAs may be updated after the server's.
func TestAConnectionTakesTheCAsOfARenewedFile(t *testing.T) {
	s := newServer(t, testkit.StoreDir(t))
	dir := s.withTLS(testkit.NewCA(t))
	s.start("127.0.0.1:-1")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	copyFile(t, ca, filepath.Join(dir, "ca.crt"))
	connection, err := Connect(t.Context(), ConnectOptions{URL: s.ClientURL(), Cluster: testCluster, CAFile: ca}, impatient()...)
	testkit.Must(t, err)
	defer connection.Close()
	testkit.NewCA(t).Issue(t, dir, time.Now().Add(time.Hour))
	if err := connection.FlushTimeout(testkit.Patience); err != nil {
		t.Errorf("the connection did not outlive the certificate: %v", err)
	}
	testkit.Must(t, connection.ForceReconnect())
	testkit.Eventually(t, "the readiness says why the server is refused", func() bool {
		err := Connected(connection)
		return err != nil && strings.Contains(err.Error(), "unknown authority")
	})
	copyFile(t, ca, filepath.Join(dir, "ca.crt"))
	testkit.Eventually(t, "the connection is back", connection.IsConnected)
}
