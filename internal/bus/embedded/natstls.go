package embedded

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// natsTLSSecret contains the certificate that the actuator's NATS server presents to its clients, its key, and the CAs that clients trust.
const natsTLSSecret = "keyturn-nats-tls"

// natsTLSYears is how long a new certificate is valid. It is renewed once less than half of this time is left.
const natsTLSYears = 3

func natsTLSEnd(now time.Time) time.Time { return now.AddDate(natsTLSYears, 0, 0) }

// outrun delays the repetitions of a run after a concurrent one has changed a Secret.
var outrun = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 6}

// makeNATSTLS creates or renews the CA and the certificate.
func (o KeyOptions) makeNATSTLS(ctx context.Context) error {
	return retry.OnError(outrun, func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
	}, func() error { return o.renewNATSTLS(ctx) })
}

// renewNATSTLS reads both Secrets once, and creates or renews them if they are due. An update fails if the Secret has changed since it was read.
//
// The CA is written before the certificate, and the certificate is read before the CA. So the certificate that was read was not signed by a newer CA.
func (o KeyOptions) renewNATSTLS(ctx context.Context) error {
	server, err := o.get(ctx, natsTLSSecret)
	if err != nil {
		return err
	}
	authorities, err := o.get(ctx, natsCASecret)
	if err != nil {
		return err
	}
	var ca *natsCA
	if authorities != nil {
		if ca, err = parseNATSCA(authorities.Data); err != nil {
			return fmt.Errorf("secret %s is damaged, delete it and the secret %s, and run this again: %w", natsCASecret, natsTLSSecret, err)
		}
	}
	var leaf *x509.Certificate
	if server != nil {
		var ours bool
		if leaf, ours, err = ca.parseCertificate(server.Data); err != nil {
			return fmt.Errorf("secret %s is damaged, delete it and run this again: %w", natsTLSSecret, err)
		}
		if !ours {
			o.reportTheirs(ctx, server.Data)
			return nil
		}
	}
	if ca, err = o.renewCA(ctx, authorities, ca); err != nil {
		return err
	}
	return o.renewCertificate(ctx, ca, server, leaf)
}

// reportTheirs logs that the certificate in the server's Secret is not ours. It logs an error if the certificate does not seem to be renewed.
func (o KeyOptions) reportTheirs(ctx context.Context, data map[string][]byte) {
	level, attributes := slog.LevelWarn, []any{"secret", natsTLSSecret, "ca", natsCASecret}
	if chain, err := certificates(data[certificateFile]); err != nil {
		level, attributes = slog.LevelError, append(attributes, "err", err)
	} else {
		attributes = append(attributes, "until", chain[0].NotAfter)
		if isHalfOver(chain[0], o.Now()) {
			level = slog.LevelError
		}
	}
	o.Logger.Log(ctx, level, "certificate is not signed by the ca of this command, left unchanged and not renewed", attributes...)
}

// parseCertificate reads the data of the server's Secret, and reports whether the CA has signed the certificate in it. A nil CA has signed
// none. An error means that the Secret is not usable, and that it may be ours. No error quotes the data.
func (ca *natsCA) parseCertificate(data map[string][]byte) (leaf *x509.Certificate, ours bool, err error) {
	if ca == nil {
		return nil, false, nil
	}
	chain, err := certificates(data[certificateFile])
	if err != nil || !ca.signed(chain[0]) {
		return nil, false, err
	}
	if _, err := tls.X509KeyPair(data[certificateFile], data[keyFile]); err != nil {
		return nil, false, errNoKey
	}
	return chain[0], true, nil
}

// renewCA returns the CA to sign with. If there is none, or it is due, it writes a new one.
func (o KeyOptions) renewCA(ctx context.Context, secret *corev1.Secret, ca *natsCA) (*natsCA, error) {
	why := missing
	if ca != nil {
		why = ca.due(o.Now())
	}
	if why == notDue {
		return ca, nil
	}
	ca, err := newNATSCA(o.Random, o.Now(), ca)
	var data map[string]string
	if err == nil {
		data, err = ca.data()
	}
	if err != nil {
		return nil, fmt.Errorf("generating the ca of the nats server: %w", err)
	}
	return ca, o.put(ctx, secret, natsCASecret, data, why)
}

// renewCertificate writes a new certificate if there is none or it is due. Otherwise it only writes the CAs, if they have changed.
func (o KeyOptions) renewCertificate(ctx context.Context, ca *natsCA, secret *corev1.Secret, leaf *x509.Certificate) error {
	data, why := map[string]string{caFile: ca.bundle()}, missing
	if leaf != nil {
		why = certificateDue(leaf, natsNames(o.TLSNamespace), o.Now())
	}
	if why == notDue && string(secret.Data[caFile]) != data[caFile] {
		return o.put(ctx, secret, natsTLSSecret, data, otherCAs)
	}
	if why == notDue {
		o.Logger.InfoContext(ctx, "certificate is valid, left unchanged", "secret", natsTLSSecret, "until", leaf.NotAfter)
		return nil
	}
	template := x509.Certificate{
		Subject: pkix.Name{CommonName: natsService}, NotAfter: natsTLSEnd(o.Now()), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range natsNames(o.TLSNamespace) {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	var err error
	if data[certificateFile], data[keyFile], err = ca.issue(o.Random, o.Now(), template); err != nil {
		return fmt.Errorf("generating the certificate of the nats server: %w", err)
	}
	return o.put(ctx, secret, natsTLSSecret, data, why)
}

// natsService is the Service through which clients reach the server.
const natsService = "keyturn-nats"

// natsNames returns the names by which clients reach the server: those of the Service and, for the pod and a port-forward, of the local machine.
func natsNames(namespace string) []string {
	service := natsService + "." + namespace
	return []string{natsService, service, service + ".svc", service + ".svc.cluster.local", "localhost", "127.0.0.1", "::1"}
}

// renewal is the reason why a CA or a certificate is written, or notDue.
type renewal string

const (
	notDue      renewal = ""
	missing     renewal = "there is none"
	notYetValid renewal = "it is not valid yet"
	caEnds      renewal = "it would end before a new certificate"
	halfOver    renewal = "less than half of its time is left"
	otherNames  renewal = "it lacks a name of the server"
	otherCAs    renewal = "there is another ca"
)

// isHalfOver reports whether less than half of the lifetime of a certificate is left.
func isHalfOver(leaf *x509.Certificate, now time.Time) bool {
	return leaf.NotAfter.Sub(now) < leaf.NotAfter.Sub(leaf.NotBefore)/2
}

// certificateDue returns why a certificate must be renewed, or notDue.
func certificateDue(leaf *x509.Certificate, names []string, now time.Time) renewal {
	switch {
	case now.Before(leaf.NotBefore):
		return notYetValid
	case isHalfOver(leaf, now):
		return halfOver
	case slices.ContainsFunc(names, func(name string) bool { return leaf.VerifyHostname(name) != nil }):
		return otherNames
	}
	return notDue
}

// due returns why the CA must be renewed, or notDue.
func (ca *natsCA) due(now time.Time) renewal {
	switch {
	case now.Before(ca.certificate.NotBefore):
		return notYetValid
	case ca.certificate.NotAfter.Before(natsTLSEnd(now)):
		return caEnds
	}
	return notDue
}
