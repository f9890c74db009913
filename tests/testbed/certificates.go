package testbed

import (
	"fmt"
	"os"
)

// Certificates are the paths of what a server on loopback proves its identity with, in PEM.
type Certificates struct {
	// CA is the certificate of the authority that has issued Cert.
	CA string
	// Cert is for servers and clients alike, and Key is its private key.
	Cert, Key string
}

// NewCertificates makes an authority of its own and a certificate of it, as files in a folder. What is there is replaced.
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
