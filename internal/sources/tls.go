package sources

import (
	"crypto/x509"
	"encoding/pem"
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

// certificateKeys are the selected keys of a Secret of cert-manager. The others are made from these; keystores get a new
// salt each time, so that their bytes change although the certificate does not.
var certificateKeys = []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, corev1.ServiceAccountRootCAKey}

// certificateName returns the name of the Certificate that a Secret is written for, or an empty string.
func certificateName(secret *corev1.Secret) string {
	name := secret.Annotations[certmanagerv1.CertificateNameKey]
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	return name
}

// isTemporary reports whether a Secret of cert-manager holds the certificate that cert-manager made by itself, for servers to
// start with until the issuer answers.
func isTemporary(secret *corev1.Secret) bool {
	return secret.Annotations[certmanagerv1.IssuerNameAnnotationKey] == ""
}

// selectedKeys returns the data of a Secret that is fingerprinted, and whether keys may have been left out.
func selectedKeys(secret *corev1.Secret) (data map[string][]byte, selected bool) {
	if certificateName(secret) == "" || secret.Annotations[annotationKeys] == keysAll {
		return secret.Data, false
	}
	data = make(map[string][]byte, len(certificateKeys))
	for _, name := range certificateKeys {
		if value, ok := secret.Data[name]; ok {
			data[name] = value
		}
	}
	return data, true
}

// leaf returns the serial number, in hexadecimal, and the end of the first certificate in PEM. They are empty if it cannot be
// read.
func leaf(chain []byte) (serial string, notAfter time.Time) {
	block, _ := pem.Decode(chain)
	if block == nil {
		return "", time.Time{}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", time.Time{}
	}
	return certificate.SerialNumber.Text(16), certificate.NotAfter.UTC()
}
