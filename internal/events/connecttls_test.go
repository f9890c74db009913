package events

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/tests/testkit"
)

// attempts has the errors of the attempts to connect.
type attempts chan error

func (r attempts) options() []nats.Option {
	return []nats.Option{
		nats.ReconnectWait(10 * time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			select {
			case r <- err:
			default:
			}
		}),
	}
}

// await waits for an attempt that fails for a reason.
func (r attempts) await(t *testing.T, want string) {
	t.Helper()
	testkit.Eventually(t, "a connection is refused: "+want, func() bool {
		select {
		case err := <-r:
			return strings.Contains(err.Error(), want)
		default:
			return false
		}
	})
}

// withTLS gives a server that is not started yet TLS, and returns the folder with the files of its certificate.
func (s *ownServer) withTLS(ca *testkit.CA) (dir string) {
	s.t.Helper()
	dir = s.t.TempDir()
	ca.Issue(s.t, dir, time.Now().Add(time.Hour))
	s.config = filepath.Join(dir, "nats.conf")
	block := `tls: { cert_file: "` + filepath.Join(dir, "tls.crt") + `", key_file: "` + filepath.Join(dir, "tls.key") + `" }`
	must(s.t, os.WriteFile(s.config, []byte(block), 0o600))
	return dir
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	must(t, err)
}

// A program's mount of the CAs may be updated after the server's.
func TestAConnectionTakesTheCAsOfARenewedFile(t *testing.T) {
	s := newServer(t, testkit.StoreDir(t))
	dir := s.withTLS(testkit.NewCA(t))
	s.start("127.0.0.1:-1")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	copyFile(t, ca, filepath.Join(dir, "ca.crt"))
	connection, err := Connect(t.Context(), ConnectOptions{URL: s.ClientURL(), Cluster: testCluster, CAFile: ca}, impatient()...)
	must(t, err)
	defer connection.Close()
	testkit.NewCA(t).Issue(t, dir, time.Now().Add(time.Hour))
	if err := connection.FlushTimeout(testkit.Patience); err != nil {
		t.Errorf("the connection did not outlive the certificate: %v", err)
	}
	must(t, connection.ForceReconnect())
	testkit.Eventually(t, "the readiness says why the server is refused", func() bool {
		err := Connected(connection)
		return err != nil && strings.Contains(err.Error(), "unknown authority")
	})
	copyFile(t, ca, filepath.Join(dir, "ca.crt"))
	testkit.Eventually(t, "the connection is back", connection.IsConnected)
}

// When TLS is turned on, one program is replaced before the other.
func TestAProgramWaitsUntilTheServerHasTLSAsItsConfiguration(t *testing.T) {
	s := newServer(t, testkit.StoreDir(t))
	s.start(freeAddress(t)) // which stays free while the server is restarted
	dir, plain := s.withTLS(testkit.NewCA(t)), ""
	encrypted := s.config
	for _, tt := range []struct {
		name    string
		options ConnectOptions
		// before and after are the server's configurations.
		before, after string
		want          string
	}{
		{"the program has it first", ConnectOptions{CAFile: filepath.Join(dir, "ca.crt")}, plain, encrypted, "secure connection not available"},
		{"the server has it first", ConnectOptions{}, encrypted, plain, "unknown authority"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.restart(func() { s.config = tt.before })
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			failed, connected := make(attempts, 100), make(chan error, 1)
			tt.options.URL, tt.options.Cluster = strings.Replace(s.ClientURL(), "tls://", "nats://", 1), testCluster
			go func() {
				connection, err := Connect(ctx, tt.options, failed.options()...)
				if err == nil {
					connection.Close()
				}
				connected <- err
			}()
			failed.await(t, tt.want)
			s.restart(func() { s.config = tt.after })
			if err := testkit.Receive(t, "the program is connected", connected); err != nil {
				t.Error(err)
			}
		})
	}
}
