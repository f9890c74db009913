package keys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"time"
)

// routesSecret has the certificate of the routes, with its CA, under the names that Kubernetes gives such files. The headless
// Service of the actuators has the same name, and the certificate is for the pods' names below it.
const routesSecret = "keyturn-nats-routes"

const (
	// routesYears is how long the certificate is valid. Nothing renews it.
	routesYears = 10
	// routesSkew is how far the clock of a node may be behind that of the job's.
	routesSkew = time.Hour
)

// newRoutesCertificate returns the data of the Secret of a new certificate that all actuators of a namespace share, as server and as client.
// Its CA signs nothing else: the CA's key is discarded, so whoever presents a certificate of this CA has read the Secret.
func newRoutesCertificate(random io.Reader, now time.Time, namespace string) (map[string]string, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, err
	}
	ca := &x509.Certificate{
		Subject:   pkix.Name{CommonName: routesSecret + " CA"},
		NotBefore: now.Add(-routesSkew), NotAfter: now.AddDate(routesYears, 0, 0),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	caDER, err := x509.CreateCertificate(random, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, err
	}
	if ca, err = x509.ParseCertificate(caDER); err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		Subject:   pkix.Name{CommonName: routesSecret},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, DNSNames: routesNames(namespace),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	leafDER, err := x509.CreateCertificate(random, leaf, ca, leafKey.Public(), caKey)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"ca.crt":  inPEM("CERTIFICATE", caDER),
		"tls.crt": inPEM("CERTIFICATE", leafDER),
		"tls.key": inPEM("PRIVATE KEY", key),
	}, nil
}

// routesNames are the forms in which a pod's name can be looked up below the Service.
func routesNames(namespace string) []string {
	service := "*." + routesSecret
	return []string{service, service + "." + namespace, service + "." + namespace + ".svc", service + "." + namespace + ".svc.cluster.local"}
}

func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
