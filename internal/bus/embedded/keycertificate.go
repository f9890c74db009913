package embedded

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"time"
)

// The names of the files of a certificate, as in Kubernetes and cert-manager.
const (
	caFile          = "ca.crt"
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// clockSkew is how far a node's clock may be behind that of the node of the job.
const clockSkew = time.Hour

// authority is a CA that can sign.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// newAuthority returns a new CA for certificates of servers and clients, which cannot sign other CAs.
func newAuthority(random io.Reader, name string, now time.Time, years int) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return authority{}, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: now.Add(-clockSkew), NotAfter: now.AddDate(years, 0, 0),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(random, template, template, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	return authority{certificate: certificate, key: key}, err
}

// issue signs a certificate for a new key, and returns both as PEM. The template contains the names, the end of validity and the usage.
func (a authority) issue(random io.Reader, now time.Time, template x509.Certificate) (certificate, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return "", "", err
	}
	template.NotBefore = now.Add(-clockSkew)
	template.KeyUsage, template.BasicConstraintsValid = x509.KeyUsageDigitalSignature, true
	der, err := x509.CreateCertificate(random, &template, a.certificate, private.Public(), a.key)
	if err != nil {
		return "", "", err
	}
	key, err = keyPEM(private)
	return certificatePEM(der), key, err
}

func certificatePEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func keyPEM(key crypto.Signer) (string, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}

// routesSecret is the Secret with the certificate of the routes and its CA. The headless Service of the actuators has the same name, and the
// certificate is for the pods' names below it.
const routesSecret = "keyturn-nats-routes"

// routesYears is how long the certificate is valid. Nothing renews it.
const routesYears = 10

// newRoutesCertificate returns the data of the Secret with a new certificate that all actuators of a namespace share, as servers and as
// clients. Its CA signs nothing else: the CA's key is discarded, so a peer with a certificate of this CA has read the Secret.
func newRoutesCertificate(random io.Reader, now time.Time, namespace string) (map[string]string, error) {
	ca, err := newAuthority(random, routesSecret+" CA", now, routesYears)
	if err != nil {
		return nil, err
	}
	certificate, key, err := ca.issue(random, now, x509.Certificate{
		Subject: pkix.Name{CommonName: routesSecret}, NotAfter: ca.certificate.NotAfter, DNSNames: routesNames(namespace),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, err
	}
	return map[string]string{caFile: certificatePEM(ca.certificate.Raw), certificateFile: certificate, keyFile: key}, nil
}

// routesNames returns the possible forms of a pod's name below the Service.
func routesNames(namespace string) []string {
	service := "*." + routesSecret
	return []string{service, service + "." + namespace, service + "." + namespace + ".svc", service + "." + namespace + ".svc.cluster.local"}
}
