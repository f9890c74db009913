package kinds

import (
	"encoding/json"
	"slices"
	"strings"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/keyturn/keyturn/internal/events"
)

// keystores are the keystore settings of a Certificate. cert-manager applies them at its next write of the Secret, not at once.
type keystores struct {
	spec      []sum // all settings of the Certificate, under each key of the ring
	passwords []cmmeta.SecretKeySelector
}

// keystoresOf returns the keystores of a Certificate, or nil if it has none or they cannot be read. A password in it is kept as a fingerprint.
func keystoresOf(ring *Keyring, source events.Source, resource *unstructured.Unstructured) *keystores {
	nested, found, err := unstructured.NestedMap(resource.Object, "spec", "keystores")
	if err != nil || !found {
		return nil
	}
	text, err := json.Marshal(nested)
	if err != nil {
		return nil
	}
	var read certmanagerv1.CertificateKeystores
	if json.Unmarshal(text, &read) != nil {
		return nil
	}
	k := &keystores{spec: ring.digest("keystores", source, text)}
	if read.JKS != nil && read.JKS.PasswordSecretRef.Name != "" {
		k.passwords = append(k.passwords, read.JKS.PasswordSecretRef)
	}
	if read.PKCS12 != nil && read.PKCS12.PasswordSecretRef.Name != "" {
		k.passwords = append(k.passwords, read.PKCS12.PasswordSecretRef)
	}
	return k
}

// recheckKeystores queues the Secret of a Certificate again, because its keystore settings are known now.
func recheckKeystores(v View, certificate *Object) {
	if certificate.details.keystores == nil || certificate.details.status == nil {
		return
	}
	secret := events.Source{Kind: events.KindSecret, Namespace: certificate.Source.Namespace, Name: certificate.details.status.fields.Secret}
	if v.Cached.Has(secret) {
		v.Queue.AddAfter(secret, 0)
	}
}

// withSettings returns the object with its keystore settings, if its Certificate and the passwords are watched.
func (o *Object) withSettings(cached Cache) *Object {
	g := o.rare().generated
	if g == nil {
		return o
	}
	name, ok := strings.CutPrefix(o.details.writer.Source, string(events.KindCertificate)+"/")
	certificate := cached.Lookup(events.Source{Kind: events.KindCertificate, Namespace: o.Source.Namespace, Name: name})
	if !ok || certificate == nil || certificate.details.keystores == nil {
		return o
	}
	known := *g
	for at, k := range g.ring.keys {
		settings := [][]byte{certificate.details.keystores.spec[at][:]}
		for _, ref := range certificate.details.keystores.passwords {
			password := sumAt(cached.Lookup(events.Source{Kind: events.KindSecret, Namespace: o.Source.Namespace, Name: ref.Name}), at, ref.Key)
			if password == nil {
				return o
			}
			settings = append(settings, password)
		}
		var written [][]byte
		for _, name := range g.names {
			written = append(written, sumAt(o, at, name))
		}
		known.settings = append(known.settings, k.digest("settings", o.Source, settings...))
		known.written = append(known.written, k.digest("written", o.Source, written...))
	}
	its, copied := *o.details, *o
	its.generated, copied.details = &known, &its
	return &copied
}

// sumAt returns the fingerprint of a key of an object, which may be nil, under the key with an index in the ring. It returns nil if there is none.
func sumAt(o *Object, at int, name string) []byte {
	if o == nil {
		return nil
	}
	keys := o.fingerprints[at].keys
	found := slices.IndexFunc(keys, func(k keyFingerprint) bool { return k.name == name })
	if found < 0 {
		return nil
	}
	return keys[found].sum[:]
}
