package embedded

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/tests/testkit"
)

var installed = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// makeRoutes creates the keys of an installation with several actuators, and returns the Secret of the routes.
func (n *namespace) makeRoutes(t *testing.T) (routes map[string]string, log string) {
	t.Helper()
	var buffer bytes.Buffer
	err := MakeKeys(t.Context(), KeyOptions{
		Secrets: n, RoutesNamespace: "keyturn-system", Now: func() time.Time { return installed }, Random: rand.Reader,
		Logger: slog.New(slog.NewTextHandler(&buffer, nil)),
	})
	testkit.Must(t, err)
	return n.secrets[routesSecret], buffer.String()
}

// parse returns the only certificate of a PEM file.
func parse(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	block, rest := pem.Decode([]byte(file))
	if block == nil || len(rest) > 0 {
		t.Fatal("got no PEM file with one block")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	testkit.Must(t, err)
	return certificate
}

func TestTheActuatorsOfANamespaceTrustEachOther(t *testing.T) {
	routes, _ := (&namespace{secrets: map[string]map[string]string{}}).makeRoutes(t)
	if diff := cmp.Diff([]string{"ca.crt", "tls.crt", "tls.key"}, slices.Sorted(maps.Keys(routes))); diff != "" {
		t.Fatalf("files (-want +got):\n%s", diff)
	}
	if _, err := tls.X509KeyPair([]byte(routes["tls.crt"]), []byte(routes["tls.key"])); err != nil {
		t.Errorf("the key is not that of the certificate: %v", err)
	}
	ca, leaf := parse(t, routes["ca.crt"]), parse(t, routes["tls.crt"])
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	inTenYears := installed.AddDate(10, 0, 0)
	for _, tt := range []struct {
		name, host string
		at         time.Time
		usage      x509.ExtKeyUsage
		trusted    bool
	}{
		{"a server by the name in the configuration", "keyturn-actuator-0.keyturn-nats-routes", installed, x509.ExtKeyUsageServerAuth, true},
		{"a server by the name of a Service", "keyturn-actuator-1.keyturn-nats-routes.keyturn-system.svc", installed, x509.ExtKeyUsageServerAuth, true},
		{"a client on a node whose clock is late", "", installed.Add(-30 * time.Minute), x509.ExtKeyUsageClientAuth, true},
		{"a client in almost ten years", "", inTenYears.Add(-time.Hour), x509.ExtKeyUsageClientAuth, true},
		{"a client after ten years", "", inTenYears.Add(time.Hour), x509.ExtKeyUsageClientAuth, false},
		{"a server of another namespace", "keyturn-actuator-0.keyturn-nats-routes.elsewhere.svc", installed, x509.ExtKeyUsageServerAuth, false},
		{"the server of the watchers", "keyturn-nats.keyturn-system.svc", installed, x509.ExtKeyUsageServerAuth, false},
		{"a signer of code", "", installed, x509.ExtKeyUsageCodeSigning, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := leaf.Verify(x509.VerifyOptions{DNSName: tt.host, Roots: roots, CurrentTime: tt.at, KeyUsages: []x509.ExtKeyUsage{tt.usage}})
			if trusted := err == nil; trusted != tt.trusted {
				t.Errorf("trusted: got %t (%v), want %t", trusted, err, tt.trusted)
			}
		})
	}
	if leaf.IsCA || leaf.KeyUsage&x509.KeyUsageCertSign != 0 {
		t.Error("the holder of the certificate can sign others")
	}
}

func TestNobodyHasTheKeyOfTheCAOfTheRoutes(t *testing.T) {
	routes, log := (&namespace{secrets: map[string]map[string]string{}}).makeRoutes(t)
	if _, err := tls.X509KeyPair([]byte(routes["ca.crt"]), []byte(routes["tls.key"])); err == nil {
		t.Error("the key of the certificate is that of its CA")
	}
	if strings.Contains(log, "PRIVATE KEY") || strings.Contains(log, "CERTIFICATE") {
		t.Error("the log has the certificate or its key")
	}
	other, _ := (&namespace{secrets: map[string]map[string]string{}}).makeRoutes(t)
	roots := x509.NewCertPool()
	roots.AddCert(parse(t, other["ca.crt"]))
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	if _, err := parse(t, routes["tls.crt"]).Verify(x509.VerifyOptions{Roots: roots, CurrentTime: installed, KeyUsages: usages}); err == nil {
		t.Error("two installations have the same CA")
	}
}
