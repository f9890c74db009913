package sources

import (
	"strconv"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/events"
)

// The reasons of the condition Issuing that are told by name. An issuer may have others.
const (
	reasonIssued = "Issued"
	reasonFailed = "Failed"
)

var certificateSource = source{
	kind:     events.KindCertificate,
	resource: "certificates." + certmanagerv1.SchemeGroupVersion.Group,
	custom:   certmanagerv1.SchemeGroupVersion.WithResource("certificates"),
	reduce: func(_ *Keyring, obj any) (*object, bool) {
		resource, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, false
		}
		return reduceStanding(events.KindCertificate, resource, issueState(resource)), true
	},
	assess: func(w *Watcher, before *last, now *object, _ queueEntry) (events.Change, bool) {
		return w.assessStanding(before, now, func(s standing) standing { return w.lookClosely(now.source, s) })
	},
}

// lookClosely gives how a Certificate stands now, with what else is known of it.
func (w *Watcher) lookClosely(certificate events.Source, s standing) standing {
	secret := w.lookup(events.Source{Kind: events.KindSecret, Namespace: certificate.Namespace, Name: s.status.Secret})
	s.status = timesInSecret(s.status, secret, certificate)
	now := w.options.Now()
	s = s.at(now)
	if renewal := s.status.RenewalTime; s.verb == events.VerbFailed && renewal.After(now) {
		// Nobody writes the Certificate when its time is up.
		w.pending.addAfter(certificate, renewal.Sub(now))
	}
	return s
}

// issueState reads how a Certificate stands. It is nil where that cannot be read. The conditions' messages are no part of
// it: they may quote what an issuer has answered.
func issueState(resource *unstructured.Unstructured) *standing {
	var status certmanagerv1.CertificateStatus
	if decodeField(resource, &status, "status") != nil {
		return nil
	}
	secret, _, err := unstructured.NestedString(resource.Object, "spec", "secretName")
	if err != nil {
		return nil
	}
	s := &standing{status: events.Status{
		Secret: printable(secret, maxStatus), NotAfter: utc(status.NotAfter), RenewalTime: utc(status.RenewalTime),
	}}
	if status.Revision != nil {
		s.status.Revision = strconv.Itoa(*status.Revision)
	}
	var issuing certmanagerv1.CertificateCondition
	for _, condition := range status.Conditions {
		switch condition.Type {
		case certmanagerv1.CertificateConditionReady:
			s.status.Reason = printable(condition.Reason, maxStatus)
		case certmanagerv1.CertificateConditionIssuing:
			issuing = condition
		}
	}
	// Both outlast the condition, which is another one while issuing is tried again.
	failed := status.LastFailureTime != nil || status.FailedIssuanceAttempts != nil && *status.FailedIssuanceAttempts > 0
	underWay := corev1.ConditionStatus(issuing.Status)
	refused := underWay == corev1.ConditionFalse && issuing.Reason != reasonIssued
	switch {
	case underWay == corev1.ConditionTrue:
	case refused:
		s.verb, s.status.Reason = events.VerbFailed, printable(issuing.Reason, maxStatus)
	case failed:
		s.verb, s.status.Reason = events.VerbFailed, reasonFailed
	case status.Revision != nil:
		s.verb = events.VerbIssued
	}
	return s
}

// at gives how a Certificate stands at a time: one that could not be issued when it was to be renewed is about to expire.
func (s standing) at(now time.Time) standing {
	renewal := s.status.RenewalTime
	s.status.Expiring = s.verb == events.VerbFailed && !renewal.IsZero() && !now.Before(renewal)
	return s
}

// timesInSecret gives a Certificate's status with the times of the certificate that is in its Secret. cert-manager writes
// the Secret first, then the revision, and the times in the status some time after. The time of renewal, which the Secret
// does not tell, is left out while the status has that of the certificate before.
func timesInSecret(status events.Status, secret *object, certificate events.Source) events.Status {
	if secret == nil || secret.about == nil || secret.about.writer.Source != certificate.String() {
		return status
	}
	if notAfter := secret.about.writer.NotAfter; !notAfter.IsZero() && !notAfter.Equal(status.NotAfter) {
		status.NotAfter, status.RenewalTime = notAfter, time.Time{}
	}
	return status
}
