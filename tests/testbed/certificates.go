package testbed

import (
	"fmt"
	"os"
)

// Certificates has the paths of the PEM files with which a server on loopback proves its identity.
type Certificates struct {
	// CA is the certificate of the authority that has issued Cert.
	CA string
	// Cert is for servers and clients alike, and Key is its private key.
	Cert, Key string
}

// NewCertificates creates a new authority and a certificate that it has issued, as files in a folder. Existing files are
// replaced.
func NewCertificates(dir string) (Certificates, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Certificates{}, fmt.Errorf("make the certificates: %w", err)
	}
	p, err := newPKI(dir)
	if err != nil {
		return Certificates{}, err
	}
	return Certificates{CA: p.ca, Cert: p.cert, Key: p.key}, nil
}
