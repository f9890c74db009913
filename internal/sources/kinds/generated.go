package kinds

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// annotationKeys with the value keysAll disables the knowledge about the writer of a source: every key counts by its bytes.
const (
	annotationKeys = "keyturn.dev/keys"
	keysAll        = "all"
)

// These are written by trust-manager on the targets of a Bundle. The hash covers the certificates and the passwords.
const (
	labelBundle          = "trust.cert-manager.io/bundle"
	annotationBundleHash = "trust.cert-manager.io/hash"
)

// certificateKeys are the keys of a Secret of cert-manager that contain its certificate.
var certificateKeys = []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, corev1.ServiceAccountRootCAKey}

// certificateFormats are the keys that cert-manager derives from the certificate: see keystores and additionalOutputFormats of a Certificate.
var certificateFormats = []string{
	certmanagerv1.JKSSecretKey, certmanagerv1.JKSTruststoreKey, certmanagerv1.PKCS12SecretKey, certmanagerv1.PKCS12TruststoreKey,
	certmanagerv1.CertificateOutputFormatCombinedPEMKey, certmanagerv1.CertificateOutputFormatDERKey,
}

// generated are keys that their writer derives from others, and whose bytes differ each time, like keystores, which have salts. Such a key counts as
// changed only if its basis changes. Until then, it keeps the fingerprint of the bytes with which it last changed.
type generated struct {
	ring  *Keyring
	names []string
	from  []string // the keys that they are derived from, as far as they are in the same object
	basis []sum    // fingerprints of the content that they are derived from, under each key of the ring
	// settings are the requested formats, and written the current ones, under each key of the ring. Both are nil if the settings are unknown.
	settings, written []sum
}

// newGenerated returns the generated keys of an object, or nil if there are none or the writer is unknown.
func newGenerated(ring *Keyring, source events.Source, meta *metav1.ObjectMeta, data map[string][]byte) *generated {
	g := &generated{ring: ring}
	var parts [][]byte
	switch {
	case source.Kind == events.KindSecret && certificateName(meta.Annotations) != "":
		g.from = certificateKeys
		for _, name := range certificateFormats {
			if _, ok := data[name]; ok {
				g.names = append(g.names, name)
			}
		}
	case meta.Labels[labelBundle] != "":
		for _, name := range slices.Sorted(maps.Keys(data)) {
			if isKeystore(name, data[name]) {
				g.names = append(g.names, name)
			} else {
				g.from = append(g.from, name)
			}
		}
		parts = append(parts, []byte(meta.Annotations[annotationBundleHash]))
	}
	if len(g.names) == 0 {
		return nil
	}
	for _, name := range g.from {
		parts = append(parts, []byte(name), data[name])
	}
	g.basis = ring.digest("generated", source, parts...)
	return g
}

// isKeystore reports whether a key of a Bundle's target is a keystore. Certificates are text.
func isKeystore(name string, value []byte) bool {
	return strings.HasSuffix(name, ".jks") || strings.HasSuffix(name, ".p12") || strings.HasSuffix(name, ".pfx") || !utf8.Valid(value)
}

// since returns the object for a comparison with the last event: unchanged generated keys have the fingerprints of the event.
func (o *Object) since(before *LastEvent) *Object {
	g := o.rare().generated
	if g == nil {
		return o
	}
	at := slices.IndexFunc(o.fingerprints, func(f fingerprints) bool { return f.keyID == before.KeyID() })
	if at < 0 || g.isAnew(at, before, o.fingerprints[at]) {
		return o
	}
	kept := o.fingerprints[at]
	kept.keys = slices.Clone(kept.keys)
	for i, k := range kept.keys {
		isSame := func(last events.LastKey) bool { return last.Name == k.name && !last.IsGone() }
		if last := slices.IndexFunc(before.Keys, isSame); last >= 0 && slices.Contains(g.names, k.name) {
			kept.keys[i].sum = before.Keys[last].Sum
		}
	}
	kept.all = g.ring.keys[at].all(o.Source, kept.keys)
	copied := *o
	copied.fingerprints = slices.Clone(o.fingerprints)
	copied.fingerprints[at] = kept
	return &copied
}

// isAnew reports whether the generated keys have changed since the last event, whose key has the given index in the ring. If the event has no basis,
// like those of earlier versions, a change of a key that they are derived from counts, and any change if they are derived from no key.
func (g *generated) isAnew(at int, before *LastEvent, now fingerprints) bool {
	last := before.rare().Generated
	switch {
	case last == nil:
		found := differencesOf(before.Change("", events.Source{}), now)
		return len(g.from) == 0 || slices.ContainsFunc(found.names, func(name string) bool { return slices.Contains(g.from, name) })
	case last.From != g.basis[at].Text(now.keyID):
		return true
	}
	// They were written with other settings.
	return g.settings != nil && last.Settings != "" &&
		last.Settings != g.settings[at].Text(now.keyID) && last.Written != g.written[at].Text(now.keyID)
}

// event returns the fields about generated keys for an event after the last one, which may be nil.
func (g *generated) event(before *LastEvent) *events.Generated {
	keyID := g.ring.keys[0].id
	said, last := &events.Generated{From: g.basis[0].Text(keyID)}, before.rare().Generated
	if last == nil {
		last = &events.Generated{}
	}
	if g.settings == nil {
		said.Settings, said.Written = last.Settings, last.Written
		return said
	}
	said.Settings, said.Written = g.settings[0].Text(keyID), g.written[0].Text(keyID)
	if last.Settings != "" && last.Written == said.Written {
		said.Settings = last.Settings // The new settings are not applied yet.
	}
	return said
}
