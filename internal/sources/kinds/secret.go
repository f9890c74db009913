package kinds

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// unreadSecrets is a field selector without the Secrets that no workload reads: Helm release records, and tokens of joining nodes. It includes tokens
// of service accounts: agents of another cluster mount them, and the controller manager renews their content.
const unreadSecrets = "type!=helm.sh/release.v1,type!=bootstrap.kubernetes.io/token"

type secretKind struct{}

func (secretKind) Listing() Listing {
	return Listing{
		Kind: events.KindSecret, Resource: corev1.SchemeGroupVersion.WithResource("secrets"), Grant: grantBase, Fields: unreadSecrets,
	}
}

func (secretKind) Reduce(ring *Keyring, obj any) (*Object, bool) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return nil, false
	}
	reduced := newObject(ring, events.KindSecret, &secret.ObjectMeta, secret.Data)
	reduced.details = secretDetails(secret)
	reduced.heedWriter(ring, &secret.ObjectMeta, secret.Data)
	return reduced, true
}

func (secretKind) Assess(v View, before *LastEvent, o State) (events.Change, bool) {
	if o.Now != nil {
		o.Now = o.Now.withWriter(v.Cached).withSettings(v.Cached)
	}
	change, ok := assessObject(v, before, o)
	if ok && o.Now != nil {
		writer, asked := writerOf(v.Cached, o.Now, before.usedRequest())
		if isOfHold(before, change) {
			asked = request{} // The requested write has not happened yet.
		}
		setCause(&change, writer, asked, before.usedRequest())
	}
	return change, ok
}

// secretDetails returns the writer of a Secret and its request, or nil if there is nothing to keep, as for most Secrets.
func secretDetails(secret *corev1.Secret) *details {
	d := details{asked: requestOf(secret.Annotations)}
	switch owner, name := externalSecretOwner(&secret.ObjectMeta), certificateName(secret.Annotations); {
	case owner != "":
		d.writer.Source = string(events.KindExternalSecret) + "/" + owner
	case name != "":
		d.writer.Source = string(events.KindCertificate) + "/" + name
		d.writer.Serial, d.writer.NotAfter = leaf(secret.Data[corev1.TLSCertKey])
		// Without an issuer, cert-manager has made a temporary certificate, so that servers can start before the issuer responds.
		d.temporary = secret.Annotations[certmanagerv1.IssuerNameAnnotationKey] == ""
	case d.asked.event == "":
		return nil
	}
	return &d
}

// maxSerial is the maximum length of a serial number, in hexadecimal digits, as in RFC 5280.
const maxSerial = 40

// leaf returns the serial number, in hexadecimal, and the end of validity of the first certificate in PEM. Both are empty if it cannot be read. The
// serial number is also empty if it is too long for an event.
func leaf(chain []byte) (serial string, notAfter time.Time) {
	block, _ := pem.Decode(chain)
	if block == nil {
		return "", time.Time{}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", time.Time{}
	}
	if serial = certificate.SerialNumber.Text(16); len(serial) > maxSerial {
		serial = ""
	}
	return serial, certificate.NotAfter.UTC()
}

type configMapKind struct{}

func (configMapKind) Listing() Listing {
	return Listing{Kind: events.KindConfigMap, Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Grant: grantBase}
}

func (configMapKind) Reduce(ring *Keyring, obj any) (*Object, bool) {
	configMap, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return nil, false
	}
	// A key is in only one of the two maps, and pods see no difference.
	data := make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
	for name, value := range configMap.Data {
		data[name] = []byte(value)
	}
	maps.Copy(data, configMap.BinaryData)
	reduced := newObject(ring, events.KindConfigMap, &configMap.ObjectMeta, data)
	reduced.heedWriter(ring, &configMap.ObjectMeta, data)
	return reduced, true
}

func (configMapKind) Assess(v View, before *LastEvent, o State) (events.Change, bool) {
	return assessObject(v, before, o)
}

// assessObject compares the content of an object with the last event, like assessContent, and logs the problems of its annotations.
func assessObject(v View, before *LastEvent, o State) (events.Change, bool) {
	change, ok := assessContent(before, o)
	if ok && change.Problem != "" && change.Problem != before.rare().Problem {
		v.Log.WarnContext(context.Background(), "invalid annotation",
			"source", o.Now.Source.String(), "namespace", o.Now.Source.Namespace, "err", change.Problem)
	}
	return change, ok
}
