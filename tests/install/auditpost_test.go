package install

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

// auditToken authenticates a store to the receiver of its audit.
const auditToken = "a-token-of-the-audit-device"

// auditLine is the line that OpenBao sends when a secret is written for the first time now.
func auditLine() []byte {
	return fmt.Appendf(nil, `{"time":%[1]q,"type":"response","auth":{"display_name":"token"},"request":{"id":"1","operation":"create",`+
		`"mount_type":"kv","mount_point":"secret/","path":"secret/data/shop/db"},"response":{"data":{"version":1,"created_time":%[1]q}}}`+"\n",
		time.Now().UTC().Format(time.RFC3339Nano))
}

// answerAsStore answers what the watcher asks a store that has the secret of auditLine.
func answerAsStore(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/sys/internal/ui/mounts":
		fmt.Fprint(w, `{"data":{"secret":{"secret/":{"type":"kv","options":{"version":"2"}}}}}`)
	case "/v1/secret/metadata/shop/db":
		fmt.Fprint(w, `{"data":{"current_version":1,"versions":{"1":{"created_time":"2026-03-14T15:00:00Z"}}}}`)
	default:
		http.NotFound(w, r)
	}
}

// post posts a line as the audit device of OpenBao does, which knows the authorities in PEM, and returns the status of the answer.
func (c *components) post(authorities []byte, token string, line []byte) int {
	c.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authorities)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(c.Context(), http.MethodPost, "https://"+c.audit+"/v1/audit/bao", bytes.NewReader(line))
	testkit.Must(c, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	testkit.Must(c, err)
	response.Body.Close()
	return response.StatusCode
}
