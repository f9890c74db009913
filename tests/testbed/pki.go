package testbed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// pki has the files with which the servers prove their identity. Creating them here, with elliptic curves, takes a
// millisecond. If each server created its own RSA certificate, that would take up to a second each.
type pki struct {
	ca          string // the certificate that clients trust
	cert        string // the servers' certificate, for loopback
	key         string
	accountsKey string // the private key that signs service account tokens
	accountsPub string
}

func newPKI(dir string) (pki, error) {
	p := pki{
		ca:          filepath.Join(dir, "ca.crt"),
		cert:        filepath.Join(dir, "server.crt"),
		key:         filepath.Join(dir, "server.key"),
		accountsKey: filepath.Join(dir, "service-accounts.key"),
		accountsPub: filepath.Join(dir, "service-accounts.pub"),
	}
	if err := p.generate(); err != nil {
		return pki{}, fmt.Errorf("make the certificates: %w", err)
	}
	return p, nil
}

func (p pki) generate() error {
	caKey, err := newKey("")
	if err != nil {
		return err
	}
	serverKey, err := newKey(p.key)
	if err != nil {
		return err
	}
	accountsKey, err := newKey(p.accountsKey)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(accountsKey.Public())
	if err != nil {
		return err
	}
	if err := writePEM(p.accountsPub, "PUBLIC KEY", public); err != nil {
		return err
	}

	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "testbed"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.ParseIP(process.Loopback)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if err := writeCert(p.ca, ca, ca, caKey, caKey); err != nil {
		return err
	}
	return writeCert(p.cert, leaf, ca, serverKey, caKey)
}

// newKey creates a private key, and writes it to a path unless that is empty.
func newKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil || path == "" {
		return key, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(path, "EC PRIVATE KEY", der)
}

func writeCert(path string, cert, issuer *x509.Certificate, key, issuerKey *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, cert, issuer, key.Public(), issuerKey)
	if err != nil {
		return err
	}
	return writePEM(path, "CERTIFICATE", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
