package keys

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"time"
)

// routesSecret has the certificate of the routes, with its CA. The headless Service of the actuators has the same name, and the
// certificate is for the pods' names below it.
const routesSecret = "keyturn-nats-routes"

// routesYears is how long the certificate is valid. Nothing renews it.
const routesYears = 10

// newRoutesCertificate returns the data of the Secret with a new certificate that all actuators of a namespace share, as servers and as
// clients. Its CA signs nothing else: the CA's key is discarded, so whoever presents a certificate of this CA has read the Secret.
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

// routesNames returns the forms in which a pod's name below the Service can be looked up.
func routesNames(namespace string) []string {
	service := "*." + routesSecret
	return []string{service, service + "." + namespace, service + "." + namespace + ".svc", service + "." + namespace + ".svc.cluster.local"}
}
