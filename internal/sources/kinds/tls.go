package kinds

import (
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"maps"
	"slices"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// annotationKeys with the value keysAll selects all keys of a Secret of cert-manager.
const (
	annotationKeys = "keyturn.dev/keys"
	keysAll        = "all"
)

// certificateKeys are the keys of a Secret of cert-manager that hold its certificate.
var certificateKeys = []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, corev1.ServiceAccountRootCAKey}

// generatedKeys are the keys that cert-manager makes from the certificate: see keystores and additionalOutputFormats of a Certificate. Keystores
// get a new salt each time, so their bytes change even if the certificate does not.
var generatedKeys = []string{
	certmanagerv1.JKSSecretKey, certmanagerv1.JKSTruststoreKey, certmanagerv1.PKCS12SecretKey, certmanagerv1.PKCS12TruststoreKey,
	certmanagerv1.CertificateOutputFormatCombinedPEMKey, certmanagerv1.CertificateOutputFormatDERKey,
}

// certificateName returns the name of the Certificate whose Secret this is, or an empty string.
func certificateName(secret *corev1.Secret) string {
	name := secret.Annotations[certmanagerv1.CertificateNameKey]
	if name == "" || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "" // The empty name is checked first: validation allocates a message, and most Secrets belong to no Certificate.
	}
	return name
}

// countedData returns the data of a Secret to fingerprint. derived reports whether its generated keys have the certificate as their data: a key
// that cert-manager generates changes exactly when the certificate does.
func countedData(secret *corev1.Secret) (data map[string][]byte, derived bool) {
	if certificateName(secret) == "" || secret.Annotations[annotationKeys] == keysAll {
		return secret.Data, false
	}
	var certificate []byte
	data = maps.Clone(secret.Data)
	for _, name := range generatedKeys {
		if _, ok := data[name]; !ok {
			continue
		}
		if certificate == nil {
			certificate = joined(secret.Data, certificateKeys)
		}
		data[name] = certificate
	}
	return data, true
}

// joined returns the values of the keys, each with its length before it. A key that is missing has no value.
func joined(data map[string][]byte, keys []string) []byte {
	var all []byte
	for _, name := range keys {
		all = binary.BigEndian.AppendUint64(all, uint64(len(data[name])))
		all = append(all, data[name]...)
	}
	return all
}

// withoutGenerated removes the generated keys that existed before from the names of changed keys, unless the certificate has changed, too. Without
// a change of the certificate, such a keystore only seems changed: its earlier fingerprint is of its own bytes, from when all keys counted. A
// keystore that was added is kept, because it is new to its readers.
func withoutGenerated(names []string, before map[string]string) []string {
	if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(certificateKeys, name) }) {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool { return before[name] != "" && slices.Contains(generatedKeys, name) })
}

// maxSerial is the maximum length of a serial number, in hexadecimal digits, as in RFC 5280.
const maxSerial = 40

// leaf returns the serial number, in hexadecimal, and the end of the first certificate in PEM. Both are empty if it cannot be read. The serial
// number is also empty if it is too long, because an event has no room for one of any length.
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
