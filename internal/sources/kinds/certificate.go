package kinds

import (
	"strconv"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
)

// These are the reasons of the condition Issuing that Keyturn uses. Issuers may set others.
const reasonIssued, reasonFailed = "Issued", "Failed"

type certificateKind struct{}

func (certificateKind) Listing() Listing {
	return Listing{Kind: events.KindCertificate, Resource: certmanagerv1.SchemeGroupVersion.WithResource("certificates"), Grant: grantCustom}
}

func (certificateKind) Reduce(ring *Keyring, obj any) (*Object, bool) {
	resource, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, false
	}
	reduced := newStatusObject(events.KindCertificate, resource, issueStatus(resource))
	reduced.details.keystores = keystoresOf(ring, reduced.Source, resource)
	return reduced, true
}

func (certificateKind) Assess(v View, before *LastEvent, o State) (events.Change, bool) {
	if o.Now != nil {
		recheckKeystores(v, o.Now)
	}
	return assessStatus(v, before, o.Now, func(s status) status { return withSecret(v, o.Now.Source, s) })
}

// withSecret completes the status of a Certificate with the times in its Secret, and sets whether the certificate is expiring.
func withSecret(v View, certificate events.Source, s status) status {
	secret := v.Cached.Lookup(events.Source{Kind: events.KindSecret, Namespace: certificate.Namespace, Name: s.fields.Secret})
	s.fields = timesInSecret(s.fields, secret, certificate)
	now, renewal := v.Now(), s.fields.RenewalTime
	s.fields.Expiring = s.verb == events.VerbFailed && !renewal.IsZero() && !renewal.After(now) // It was not renewed in time.
	if s.verb == events.VerbFailed && renewal.After(now) {
		// The Certificate is not updated when its renewal time passes.
		v.Queue.AddAfter(certificate, renewal.Sub(now))
	}
	return s
}

// certificateParts are the parts of a Certificate that determine its status. Newer fields are ignored.
type certificateParts struct {
	Spec struct {
		SecretName string `json:"secretName"`
	} `json:"spec"`
	Status certmanagerv1.CertificateStatus `json:"status"`
}

// issueStatus returns the status of a Certificate, or nil if it cannot be read. It omits the messages of conditions, which may quote an issuer's
// response.
func issueStatus(resource *unstructured.Unstructured) *status {
	var parts certificateParts
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(resource.Object, &parts); err != nil {
		return nil
	}
	read := parts.Status
	s := &status{fields: events.Status{
		Secret: ifPrintable(parts.Spec.SecretName, maxStatus), NotAfter: utc(read.NotAfter), RenewalTime: utc(read.RenewalTime),
	}}
	if read.Revision != nil {
		s.fields.Revision = strconv.Itoa(*read.Revision)
	}
	var issuing certmanagerv1.CertificateCondition
	for _, condition := range read.Conditions {
		switch condition.Type {
		case certmanagerv1.CertificateConditionReady:
			s.fields.Reason = ifPrintable(condition.Reason, maxStatus)
		case certmanagerv1.CertificateConditionIssuing:
			issuing = condition
		}
	}
	// Both fields outlast the condition, which changes during retries.
	failed := read.LastFailureTime != nil || read.FailedIssuanceAttempts != nil && *read.FailedIssuanceAttempts > 0
	current := corev1.ConditionStatus(issuing.Status)
	switch {
	case current == corev1.ConditionTrue:
	case current == corev1.ConditionFalse && issuing.Reason != reasonIssued:
		s.verb, s.fields.Reason = events.VerbFailed, ifPrintable(issuing.Reason, maxStatus)
	case failed:
		s.verb, s.fields.Reason = events.VerbFailed, reasonFailed
	case read.Revision != nil:
		s.verb = events.VerbIssued
	}
	return s
}

// timesInSecret replaces the times in a Certificate's status with those in its Secret, which cert-manager writes first. The Secret has no renewal
// time, so it is omitted while the status still describes the previous certificate.
func timesInSecret(read events.Status, secret *Object, certificate events.Source) events.Status {
	if secret == nil || secret.rare().writer.Source != certificate.String() {
		return read
	}
	if notAfter := secret.rare().writer.NotAfter; !notAfter.IsZero() && !notAfter.Equal(read.NotAfter) {
		read.NotAfter, read.RenewalTime = notAfter, time.Time{}
	}
	return read
}

// certificateName returns the name of the Certificate of a Secret with these annotations, or an empty string.
func certificateName(annotations map[string]string) string {
	name := annotations[certmanagerv1.CertificateNameKey]
	if name == "" || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "" // The empty name is checked first, because validation allocates, and most Secrets belong to no Certificate.
	}
	return name
}
