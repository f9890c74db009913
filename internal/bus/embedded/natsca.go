package embedded

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

// natsCASecret contains the CA that signs the certificate of the NATS server. No pod mounts it.
const natsCASecret = "keyturn-nats-ca"

// natsCAYears is how long a new CA is valid. It is renewed if it would end before a new certificate.
const natsCAYears = 10

// natsCA is a CA with the certificates that clients must trust: its own, and that of the previous CA, which may have signed the certificate that the
// server still presents.
type natsCA struct {
	authority
	trusted []*x509.Certificate
}

// newNATSCA returns a new CA. Before is the previous CA, or nil.
func newNATSCA(random io.Reader, now time.Time, before *natsCA) (*natsCA, error) {
	made, err := newAuthority(random, natsCASecret, now, natsCAYears)
	if err != nil {
		return nil, err
	}
	ca := &natsCA{authority: made, trusted: []*x509.Certificate{made.certificate}}
	if before != nil {
		ca.trusted = append(ca.trusted, before.certificate)
	}
	return ca, nil
}

// parseNATSCA reads the data of the Secret. No error quotes the data.
func parseNATSCA(data map[string][]byte) (*natsCA, error) {
	trusted, err := certificates(data[certificateFile])
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(data[certificateFile], data[keyFile])
	if err != nil {
		return nil, errNoKey
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !trusted[0].IsCA {
		return nil, errNoCA
	}
	return &natsCA{authority: authority{certificate: trusted[0], key: key}, trusted: trusted}, nil
}

// certificates returns all certificates of a PEM file, at least one.
func certificates(file []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for len(strings.TrimSpace(string(file))) > 0 {
		var block *pem.Block
		if block, file = pem.Decode(file); block == nil {
			return nil, errNoCertificate
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errNoCertificate
		}
		all = append(all, certificate)
	}
	if len(all) == 0 {
		return nil, errNoCertificate
	}
	return all, nil
}

// signed reports whether this CA or the previous one has signed a certificate.
func (ca *natsCA) signed(certificate *x509.Certificate) bool {
	return slices.ContainsFunc(ca.trusted, func(by *x509.Certificate) bool { return certificate.CheckSignatureFrom(by) == nil })
}

// bundle returns the certificates that clients must trust, as PEM.
func (ca *natsCA) bundle() string {
	var file strings.Builder
	for _, certificate := range ca.trusted {
		file.WriteString(certificatePEM(certificate.Raw))
	}
	return file.String()
}

// data returns the data of the Secret.
func (ca *natsCA) data() (map[string]string, error) {
	key, err := keyPEM(ca.key)
	return map[string]string{certificateFile: ca.bundle(), keyFile: key}, err
}

// The errors about a damaged Secret of this package.
var (
	errNoCertificate = errors.New(certificateFile + " has something else than certificates in PEM")
	errNoKey         = errors.New(keyFile + " is not the private key of the first certificate in " + certificateFile)
	errNoCA          = errors.New(certificateFile + " does not begin with the certificate of a CA")
)
