package sources

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// annotationKeys says of a Secret of cert-manager that all of its keys count, with the value keysAll.
const (
	annotationKeys = "keyturn.dev/keys"
	keysAll        = "all"
)

// certificateKeys are the keys of a Secret of cert-manager that count. The others are made from these, keystores with a
// fresh salt each time, so that their bytes change where the certificate does not.
var certificateKeys = []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, corev1.ServiceAccountRootCAKey}

// certificateName is the Certificate that a Secret is written for, in the namespace of the Secret. It is empty where there
// is none.
func certificateName(secret *corev1.Secret) string {
	name := secret.Annotations[certmanagerv1.CertificateNameKey]
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ""
	}
	return name
}

// isTemporary tells whether a Secret of cert-manager holds the certificate that cert-manager made by itself, for servers to
// start with until the issuer has answered.
func isTemporary(secret *corev1.Secret) bool {
	return secret.Annotations[certmanagerv1.IssuerNameAnnotationKey] == ""
}

// counted gives the data of a Secret that its content consists of, and whether that is not all of it.
func counted(secret *corev1.Secret) (data map[string][]byte, narrowed bool) {
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

// leaf reads the serial number, in hexadecimal, and the end of the first certificate in PEM. They are empty where there is
// none that can be read.
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
