package keys

import (
	"crypto/x509"
	"time"
)

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

// String returns the reason, for the log.
func (r renewal) String() string { return string(r) }

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
	}
	for _, name := range names {
		if leaf.VerifyHostname(name) != nil {
			return otherNames
		}
	}
	return notDue
}
