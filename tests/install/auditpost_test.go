package install

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// auditToken authenticates a store to the receiver of its audit.
const auditToken = "a-token-of-the-audit-device"

// auditLine is a line that a store has sent when a secret was written for the first time, out of the sample of its audit.
func auditLine(t *testing.T, sample string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../internal/sources/openbao/testdata", sample))
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		var line struct {
			Type    string
			Request struct{ Operation, Path string }
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Type == "response" && line.Request.Operation == "create" && line.Request.Path == "secret/data/shop/db" {
			return append(bytes.Clone(lines.Bytes()), '\n')
		}
	}
	t.Fatalf("%s has no write of secret/data/shop/db", sample)
	return nil
}

// post posts a line as the audit device of OpenBao does, which knows the authorities in PEM, and returns the status of the answer.
func (c *components) post(authorities []byte, token string, line []byte) int {
	c.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authorities)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(c.Context(), http.MethodPost, "https://"+c.audit+"/v1/audit/bao", bytes.NewReader(line))
	if err != nil {
		c.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		c.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}
