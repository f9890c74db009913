package main

import (
	"context"
	"fmt"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/events"
)

var certificates = certmanagerv1.SchemeGroupVersion.WithResource("certificates")

// isIssued reports whether the certificate is issued and its Secret written.
func (s *stage) isIssued(ctx context.Context) (bool, error) {
	certificate, err := s.chain.custom.Resource(certificates).Namespace(namespace).Get(ctx, "gateway", metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading certificate/gateway: %w", err)
	}
	revision, _, err := unstructured.NestedInt64(certificate.Object, "status", "revision")
	return revision > 0, err
}

// renew makes cert-manager reissue the certificate, with the condition that `cmctl renew` sets.
func renew(ctx context.Context, s *stage, out *report) error {
	client := s.chain.custom.Resource(certificates).Namespace(namespace)
	certificate, err := client.Get(ctx, "gateway", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading certificate/gateway: %w", err)
	}
	conditions, _, err := unstructured.NestedSlice(certificate.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("reading certificate/gateway: %w", err)
	}
	conditions = append(conditions, map[string]any{
		"type": string(certmanagerv1.CertificateConditionIssuing), "status": "True", "reason": "ManuallyTriggered",
		"message": "Requested by the demo", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	})
	if err := unstructured.SetNestedSlice(certificate.Object, conditions, "status", "conditions"); err != nil {
		return fmt.Errorf("asking for a certificate: %w", err)
	}
	s.chain.asked = time.Now()
	if _, err := client.UpdateStatus(ctx, certificate, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("asking for a certificate: %w", err)
	}
	out.did("asked cert-manager to renew certificate/gateway")
	return nil
}

// tellRenewal shows the timeline of the renewal.
func tellRenewal(ctx context.Context, s *stage, out *report) error {
	asked := s.chain.asked
	certificate := events.Source{Kind: events.KindCertificate, Namespace: namespace, Name: "gateway"}
	issued, err := s.stream.find(ctx, asked, certificate, func(change events.Change) bool { return change.Verb == events.VerbIssued })
	if err != nil {
		return err
	}
	secret := events.Source{Kind: events.KindSecret, Namespace: namespace, Name: "gateway-tls"}
	changed, err := s.stream.find(ctx, asked, secret, func(change events.Change) bool {
		return change.Verb == events.VerbChanged && change.Cause != nil && change.Cause.Source == certificate.String()
	})
	if err != nil {
		return err
	}
	return out.timeline(append([]mark{
		{"asked", asked, "for a renewal of certificate/gateway"},
		{"issued", issued.Time, "event certificate.issued: revision " + issued.Status.Revision + " of certificate/gateway"},
		{"changed", changed.Time, "event secret.changed: secret/gateway-tls by certificate/gateway"},
	}, s.rolled("deployment/gateway")...)...)
}
