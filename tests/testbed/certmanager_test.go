package testbed

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/manifests"
)

// certificates returns an authority, signed by a ClusterIssuer named like the namespace, and a certificate that it issues.
func certificates(namespace string) string {
	return manifests.Join(
		manifests.SelfSigned("", namespace),
		manifests.Authority(namespace, "authority", "ClusterIssuer", namespace),
		manifests.Certificate{Namespace: namespace, Name: "web", Issuer: "authority"}.YAML(),
	)
}

func TestCertManagerIssues(t *testing.T) {
	start := time.Now()
	operator := startCertManager(t)
	t.Logf("start of cert-manager: %v", time.Since(start))

	namespace := bed.Namespace(t)
	start = time.Now()
	if err := bed.ApplyYAML(t.Context(), strings.NewReader(certificates(namespace))); err != nil {
		t.Fatal(err)
	}
	issued := waitSecret(t, namespace, "web", hasCertificate)
	t.Logf("authority and certificate: %v", time.Since(start))
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, issued.Data["ca.crt"]))
	first := certificate(t, issued.Data["tls.crt"])
	if _, err := first.Verify(x509.VerifyOptions{Roots: roots, DNSName: "web.test"}); err != nil {
		t.Error(err)
	}

	// The Secret is written before the issuance is complete, and an interrupted issuance would be resumed.
	waitIssued(t, namespace, "web")
	operator.Kill()
	if err := bed.client.CoreV1().Secrets(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	startCertManager(t)
	second := certificate(t, waitSecret(t, namespace, "web", hasCertificate).Data["tls.crt"])
	if first.SerialNumber.Cmp(second.SerialNumber) == 0 {
		t.Error("the certificate is the one that was there before")
	}
}

func startCertManager(t *testing.T) *process.Process {
	t.Helper()
	p, err := bed.StartCertManager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.StopAfter(t)
	return p
}

// waitIssued waits until a Certificate is ready and its issuance is complete.
func waitIssued(t *testing.T, namespace, name string) {
	t.Helper()
	client, err := dynamic.NewForConfig(bed.Config())
	if err != nil {
		t.Fatal(err)
	}
	resource := client.Resource(schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}).Namespace(namespace)
	testkit.Await(t, "certificate "+name+" is issued", func(ctx context.Context) bool {
		object, err := resource.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
		if err != nil {
			t.Fatal(err)
		}
		holds := map[any]any{}
		for _, condition := range conditions {
			if condition, ok := condition.(map[string]any); ok {
				holds[condition["type"]] = condition["status"]
			}
		}
		issuing, found := holds["Issuing"]
		return holds["Ready"] == "True" && (!found || issuing == "False")
	})
}

func hasCertificate(data map[string][]byte) bool { return len(data["tls.crt"]) > 0 }

// certificate returns the first certificate of a PEM file.
func certificate(t *testing.T, file []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(file)
	if block == nil {
		t.Fatal("there is no certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
