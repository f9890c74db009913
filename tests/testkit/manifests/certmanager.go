package manifests

import "fmt"

// SelfSigned returns an issuer of self-signed certificates. An empty namespace means a ClusterIssuer.
func SelfSigned(namespace, name string) string {
	kind, in := "Issuer", ", namespace: "+namespace
	if namespace == "" {
		kind, in = "ClusterIssuer", ""
	}
	return fmt.Sprintf(`apiVersion: cert-manager.io/v1
kind: %s
metadata: {name: %s%s}
spec: {selfSigned: {}}
`, kind, name, in)
}

// Authority returns a certificate authority: its certificate, and the Issuer that signs with it, both with the same name. The
// certificate is signed by the issuer of the given kind.
func Authority(namespace, name, issuerKind, issuer string) string {
	return Join(Certificate{
		Namespace: namespace, Name: name, Issuer: issuer, IssuerKind: issuerKind, Spec: "isCA: true\n  commonName: " + name,
	}.YAML(), fmt.Sprintf(`apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: %s, namespace: %s}
spec: {ca: {secretName: %s}}
`, name, namespace, name))
}

// Certificate is a certificate of cert-manager.
type Certificate struct {
	Namespace, Name string
	// Secret is the name of the Secret that holds it. Empty means Name.
	Secret string
	// Issuer signs the certificate. An empty kind means Issuer.
	Issuer, IssuerKind string
	// Annotations are the annotations, in braces. Empty means none.
	Annotations string
	// Spec holds further fields of its spec. Empty means the DNS name <Name>.test.
	Spec string
}

// YAML returns one document.
func (c Certificate) YAML() string {
	if c.Secret == "" {
		c.Secret = c.Name
	}
	if c.IssuerKind == "" {
		c.IssuerKind = "Issuer"
	}
	if c.Annotations == "" {
		c.Annotations = "{}"
	}
	if c.Spec == "" {
		c.Spec = "dnsNames: [" + c.Name + ".test]"
	}
	return fmt.Sprintf(`apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: %s, namespace: %s, annotations: %s}
spec:
  %s
  secretName: %s
  privateKey: {algorithm: ECDSA, size: 256}
  issuerRef: {kind: %s, name: %s}
`, c.Name, c.Namespace, c.Annotations, c.Spec, c.Secret, c.IssuerKind, c.Issuer)
}
