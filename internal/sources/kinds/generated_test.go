package kinds

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/reloader"
)

// metadata is the metadata of the source of these tests.
type metadata struct {
	labels, annotations map[string]string
	owner               metav1.OwnerReference
}

func (m metadata) at(version int) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Namespace: testSource.Namespace, Name: testSource.Name, UID: types.UID("u"), ResourceVersion: strconv.Itoa(version),
		Labels: m.labels, Annotations: m.annotations,
	}
	if m.owner.Kind != "" {
		meta.OwnerReferences = []metav1.OwnerReference{m.owner}
	}
	return meta
}

// kept is the source as the informers keep it.
func kept(t testing.TB, meta metadata, version int, data content) *Object {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: meta.at(version), Data: data.data()}
	return heededOf(t, secretKind{}, keyringOf(1), reloader.Default(), secret)
}

// state is a state of a source, which is gone without data, and the event that it makes.
type state struct {
	meta metadata
	data content
	want string
}

// runStates compares the states of a Secret, at the resourceVersions 1, 2 and so on, each with the last event before it.
func runStates(t *testing.T, states []state) {
	t.Helper()
	c := chain{t: t}
	for i, s := range states {
		var now *Object
		if s.data != nil {
			now = kept(t, s.meta, i+1, s.data)
		}
		if got := c.see(now, false); got != s.want {
			t.Fatalf("state %d: event %s\n want %s", i+1, got, s.want)
		}
	}
}

func bundle(annotations map[string]string) metadata {
	return metadata{labels: map[string]string{"trust.cert-manager.io/bundle": "company-roots"}, annotations: annotations}
}

func hashed(hash string) metadata {
	return bundle(map[string]string{"trust.cert-manager.io/hash": hash})
}

func roots(pem, jks, p12 string) content {
	return content{"roots.pem": pem, "roots.jks": jks, "roots.p12": p12}
}

func TestKeystoresOfABundleChangeWithItsCertificates(t *testing.T) {
	const found = "observed u/1 {roots.jks roots.p12 roots.pem} []"
	for _, tt := range []struct {
		name   string
		states []state
	}{
		{"other salts are no change, and a new root is one of all", []state{
			{hashed("5f1d"), roots("one", "a", "a"), found},
			{hashed("5f1d"), roots("one", "b", "b"), nothing},
			{hashed("5f1d"), roots("one", "c", "c"), nothing},
			{hashed("99aa"), roots("two", "d", "d"), "changed u/4@4 {roots.jks@4 roots.p12@4 roots.pem@4} [roots.jks roots.p12 roots.pem] previous"},
			{hashed("99aa"), roots("two", "e", "e"), nothing},
		}},
		{"a new password is a change of the keystores, which the hash tells", []state{
			{hashed("5f1d"), roots("one", "a", "a"), found},
			{hashed("7c00"), roots("one", "b", "b"), "changed u/2@2 {roots.jks@2 roots.p12@2 roots.pem} [roots.jks roots.p12] previous"},
			{hashed("7c00"), roots("one", "c", "c"), nothing},
		}},
		{"without a hash the certificates tell", []state{
			{bundle(nil), roots("one", "a", "a"), found},
			{bundle(nil), roots("one", "b", "b"), nothing},
			{bundle(nil), roots("two", "c", "c"), "changed u/3@3 {roots.jks@3 roots.p12@3 roots.pem@3} [roots.jks roots.p12 roots.pem] previous"},
		}},
		{"a keystore of any name is known by its bytes", []state{
			{hashed("5f1d"), content{"ca.pem": "one", "cacerts": "\xfe\xed\xfe\xed1"}, "observed u/1 {ca.pem cacerts} []"},
			{hashed("5f1d"), content{"ca.pem": "one", "cacerts": "\xfe\xed\xfe\xed2"}, nothing},
			{hashed("99aa"), content{"ca.pem": "two", "cacerts": "\xfe\xed\xfe\xed3"}, "changed u/3@3 {ca.pem@3 cacerts@3} [ca.pem cacerts] previous"},
		}},
		{"an earlier version has counted the bytes", []state{
			{metadata{}, roots("one", "a", "a"), found},
			{hashed("5f1d"), roots("one", "b", "b"), "observed u/2 {roots.jks roots.p12 roots.pem} []"},
			{hashed("7c00"), roots("one", "c", "c"), "changed u/3@3 {roots.jks@3 roots.p12@3 roots.pem} [roots.jks roots.p12] previous"},
		}},
		{"nobody is known to write it", []state{
			{metadata{}, roots("one", "a", "a"), found},
			{metadata{}, roots("one", "b", "a"), "changed u/2@2 {roots.jks@2 roots.p12 roots.pem} [roots.jks] previous"},
		}},
		{"every key counts", []state{
			{bundle(map[string]string{"trust.cert-manager.io/hash": "5f1d", "keyturn.dev/keys": "all"}), roots("one", "a", "a"), found},
			{
				bundle(map[string]string{"trust.cert-manager.io/hash": "5f1d", "keyturn.dev/keys": "all"}), roots("one", "b", "b"),
				"changed u/2@2 {roots.jks@2 roots.p12@2 roots.pem} [roots.jks roots.p12] previous",
			},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { runStates(t, tt.states) })
	}
}

func TestABundleInAConfigMapIsKnown(t *testing.T) {
	c := chain{t: t}
	for i, s := range []struct{ hash, pem, jks, want string }{
		{"5f1d", "one", "\xfe\xeda", "observed u/1 {roots.jks roots.pem} []"},
		{"5f1d", "one", "\xfe\xedb", nothing},
		{"99aa", "two", "\xfe\xedc", "changed u/3@3 {roots.jks@3 roots.pem@3} [roots.jks roots.pem] previous"},
	} {
		now := reducedOf(t, configMapKind{}, &corev1.ConfigMap{
			ObjectMeta: hashed(s.hash).at(i + 1), Data: map[string]string{"roots.pem": s.pem}, BinaryData: map[string][]byte{"roots.jks": []byte(s.jks)},
		})
		if got := c.see(now, false); got != s.want {
			t.Fatalf("state %d: event %s\n want %s", i+1, got, s.want)
		}
	}
}

// The events of two watchers with the same keys are the same, whichever of the keys is the current one.
func TestAGeneratedKeyKeepsItsFingerprintOnlyUnderItsKey(t *testing.T) {
	seen := func(ring *Keyring, version int, salt string) *Object {
		secret := &corev1.Secret{ObjectMeta: hashed("5f1d").at(version), Data: roots("one", salt, salt).data()}
		now, _ := (secretKind{}).Reduce(ring, secret)
		return now
	}
	c := chain{t: t}
	c.see(seen(keyringOf(1), 1, "a"), false)
	if got := c.see(seen(keyringOf(2, 1), 2, "b"), false); got != nothing {
		t.Errorf("with another current key it is %s", got)
	}
	if got := c.see(seen(keyringOf(1, 2), 3, "c"), false); got != nothing {
		t.Errorf("with the earlier key it is %s", got)
	}
}

// certificateWith is the Certificate of the Secret of these tests, with a keystore of a profile.
func certificateWith(t *testing.T, profile string) *Object {
	t.Helper()
	return reducedOf(t, certificateKind{}, customOf(t, `{"metadata": {"namespace": "shop", "name": "web", "uid": "c", "resourceVersion": "1"},
		"spec": {"secretName": "db", "keystores": {"pkcs12": {"create": true, "profile": "`+profile+`", "passwordSecretRef": {"name": "store", "key": "a"}}}}}`))
}

func TestAKeystoreWithANewPasswordChangesOnceItIsWritten(t *testing.T) {
	const unchanged = " {keystore.p12 tls.crt} []"
	var before *LastEvent
	for i, s := range []struct {
		name, profile, password, certificate, salt string
		want                                       string
	}{
		{"found", "Modern2023", "one", "1", "a", "observed u/1" + unchanged},
		{"written anew", "Modern2023", "one", "1", "b", "observed u/2" + unchanged},
		{"it is to have another password", "Modern2023", "two", "1", "b", nothing},
		{"it has it", "Modern2023", "two", "1", "c", "changed u/4@4 {keystore.p12@4 tls.crt} [keystore.p12] previous"},
		{"written anew again", "Modern2023", "two", "1", "d", "observed u/5@4 {keystore.p12@4 tls.crt} []"},
		{"it has another profile", "LegacyDES", "two", "1", "e", "changed u/6@6 {keystore.p12@6 tls.crt} [keystore.p12] previous"},
		{"its Certificate is not watched any more", "", "", "1", "f", nothing},
		{"the certificate is renewed", "LegacyDES", "two", "2", "g", "changed u/8@8 {keystore.p12@8 tls.crt@8} [keystore.p12 tls.crt] previous"},
	} {
		v := viewOf(t, epoch)
		if s.profile != "" {
			v = viewOf(t, epoch, certificateWith(t, s.profile), reducedOf(t, secretKind{}, secretOf("store", "s", "1", s.password)))
		}
		got := nothing
		now := kept(t, issued, i+1, content{"tls.crt": s.certificate, "keystore.p12": s.salt})
		if change, ok := (secretKind{}).Assess(v.View, before, State{Now: now}); ok {
			got, before = told(change), mustLast(t, change)
		}
		if got != s.want {
			t.Fatalf("%s: event %s\n want %s", s.name, got, s.want)
		}
	}
}

func TestACertificateWithKeystoresHasItsSecretLookedAtAgain(t *testing.T) {
	certificate := certificateWith(t, "Modern2023")
	v := viewOf(t, epoch, kept(t, issued, 1, content{"tls.crt": "1"}))
	(certificateKind{}).Assess(v.View, nil, State{Now: certificate})
	if len(v.rechecks) != 1 || v.rechecks[0].source != testSource {
		t.Errorf("looked at again: %+v", v.rechecks)
	}
	v = viewOf(t, epoch)
	(certificateKind{}).Assess(v.View, nil, State{Now: certificate})
	if len(v.rechecks) != 0 {
		t.Errorf("without a Secret: %+v", v.rechecks)
	}
}

func TestNoPasswordOfAKeystoreIsKept(t *testing.T) {
	certificate := reducedOf(t, certificateKind{}, customOf(t, `{"metadata": {"namespace": "shop", "name": "web"},
		"spec": {"keystores": {"jks": {"create": true, "password": "`+canary+`"}}}, "status": {}}`))
	if certificate.details.keystores == nil || len(certificate.details.keystores.passwords) != 0 {
		t.Errorf("kept is %+v", certificate.details.keystores)
	}
	if source := (events.Source{Kind: events.KindCertificate, Namespace: "shop", Name: "web"}); certificate.Source != source {
		t.Errorf("of %v", certificate.Source)
	}
}
