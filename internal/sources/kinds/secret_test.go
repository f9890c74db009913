package kinds

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// issued is the metadata of a Secret with a certificate of an issuer, and temporary that of one with a certificate that cert-manager made by itself.
var (
	issued    = metadata{annotations: map[string]string{"cert-manager.io/certificate-name": "web", "cert-manager.io/issuer-name": "ca"}}
	temporary = metadata{annotations: map[string]string{"cert-manager.io/certificate-name": "web"}}
)

func TestCompareSecretsOfCertManager(t *testing.T) {
	keystore := func(certificate, salt string) content { return content{"tls.crt": certificate, "keystore.jks": salt} }
	for _, tt := range []struct {
		name   string
		states []state
	}{
		{"a keystore that was made anew from the same certificate is no change", []state{
			{issued, keystore("1", "a"), "observed u/1 {keystore.jks tls.crt} []"},
			{issued, keystore("1", "b"), nothing},
			{issued, keystore("2", "c"), "changed u/3@3 {keystore.jks@3 tls.crt@3} [keystore.jks tls.crt] previous"},
		}},
		{"a keystore that is added is a change, and none when it is made anew", []state{
			{issued, content{"tls.crt": "1"}, "observed u/1 {tls.crt} []"},
			{issued, keystore("1", "a"), "changed u/2@2 {keystore.jks@2 tls.crt} [keystore.jks] previous"},
			{issued, keystore("1", "b"), nothing},
			{issued, keystore("2", "c"), "changed u/4@4 {keystore.jks@4 tls.crt@4} [keystore.jks tls.crt] previous"},
		}},
		{"a keystore counts where the Secret says so", []state{
			{issued.annotatedWith("keyturn.dev/keys", "all"), keystore("1", "a"), "observed u/1 {keystore.jks tls.crt} []"},
			{issued.annotatedWith("keyturn.dev/keys", "all"), keystore("1", "b"), "changed u/2@2 {keystore.jks@2 tls.crt} [keystore.jks] previous"},
		}},
		{"a keystore that does not count any more was not removed", []state{
			{metadata{}, keystore("1", "a"), "observed u/1 {keystore.jks tls.crt} []"},
			{issued, keystore("1", "b"), "observed u/2 {keystore.jks tls.crt} []"},
			{issued, keystore("2", "b"), "changed u/3@3 {keystore.jks@3 tls.crt@3} [keystore.jks tls.crt] previous"},
			{issued, keystore("2", "c"), nothing},
		}},
		{"a keystore that was removed, as for a new password, is another one", []state{
			{issued, keystore("1", "a"), "observed u/1 {keystore.jks tls.crt} []"},
			{issued, content{"tls.crt": "1"}, "changed u/2@2 {-keystore.jks@2 tls.crt} [keystore.jks] previous"},
			{issued, keystore("1", "b"), "changed u/3@3 {keystore.jks@3 tls.crt} [keystore.jks] previous"},
			{issued, keystore("1", "c"), nothing},
		}},
		{"a Secret that is there again with a temporary certificate waits for the real one", []state{
			{issued, content{"tls.crt": "1"}, "observed u/1 {tls.crt} []"},
			{metadata{}, nil, "deleted u/1 {tls.crt} []"},
			{temporary, content{"tls.crt": "2"}, nothing},
			{issued, content{"tls.crt": "3"}, "changed u/4@4 {tls.crt@4} [tls.crt] created previous"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { runStates(t, tt.states) })
	}
}

func TestATemporaryCertificateOfANewSecretIsPublishedAsCreated(t *testing.T) {
	c := chain{t: t}
	if got, want := c.see(kept(t, temporary, 1, content{"tls.crt": "1"}), true), "changed u/1@1 {tls.crt} [tls.crt] created"; got != want {
		t.Errorf("event %s\n want %s", got, want)
	}
}

func TestTheWriterOfASecretIsWhatTheSecretSays(t *testing.T) {
	chain := string(pemOf(t, big.NewInt(0x5f0c), epoch))
	owned := func(kind, apiVersion, name string, controls bool) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{Kind: "Namespace", Name: "x"}, {Kind: kind, APIVersion: apiVersion, Name: name, Controller: &controls},
		}}}
	}
	certified := func(meta metadata, certificate string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: meta.annotations}, Data: map[string][]byte{"tls.crt": []byte(certificate)},
		}
	}
	both := certified(issued, chain)
	both.OwnerReferences = owned("ExternalSecret", "external-secrets.io/v1", "db", true).OwnerReferences
	real := events.Cause{Source: "certificate/web", Serial: "5f0c", NotAfter: epoch}
	for _, tt := range []struct {
		name   string
		secret *corev1.Secret
		want   *details
	}{
		{"the ExternalSecret that controls it", owned("ExternalSecret", "external-secrets.io/v1", "db", true), &details{writer: events.Cause{Source: "externalsecret/db"}}},
		{"no ExternalSecret that is but one of its owners", owned("ExternalSecret", "external-secrets.io/v1", "db", false), nil},
		{"no ExternalSecret of another group", owned("ExternalSecret", "example.com/v1", "db", true), nil},
		{"no ExternalSecret whose name cannot be one", owned("ExternalSecret", "external-secrets.io/v1", "A B", true), nil},
		{"the Certificate that it is for, as the certificate has it", certified(issued, chain), &details{writer: real}},
		{"the Certificate while it is temporary", certified(temporary, chain), &details{writer: real, temporary: true}},
		{"the Certificate alone where there is no certificate yet", certified(issued, ""), &details{writer: events.Cause{Source: "certificate/web"}}},
		{"the ExternalSecret where a certificate was copied by one", both, &details{writer: events.Cause{Source: "externalsecret/db"}}},
		{"nobody, but it was asked for", certified(metadata{}.annotatedWith("keyturn.dev/cause", "e1"), chain), &details{asked: request{event: "e1"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.WantEqual(t, "what is known", tt.want, secretDetails(tt.secret), cmp.AllowUnexported(details{}, request{}))
		})
	}
}

func TestASerialNumberIsBounded(t *testing.T) {
	const want = "7fffffffffffffffffffffffffffffffffffffff" // the largest of 20 bytes
	largest, _ := new(big.Int).SetString(want, 16)
	for serial, want := range map[*big.Int]string{largest: want, new(big.Int).Lsh(largest, 8*1000): ""} {
		if got, notAfter := leaf(pemOf(t, serial, epoch)); got != want || !notAfter.Equal(epoch) {
			t.Errorf("got %.60q, %s", got, notAfter)
		}
	}
}

func FuzzLeaf(f *testing.F) {
	f.Add(pemOf(f, big.NewInt(1), epoch))
	f.Add(slices.Concat(pemOf(f, big.NewInt(1), epoch), pemOf(f, big.NewInt(2), epoch)))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("no certificate"))
	f.Fuzz(func(t *testing.T, chain []byte) {
		serial, notAfter := leaf(chain)
		if len(serial) > maxSerial {
			t.Errorf("the serial number has %d digits", len(serial))
		}
		if notAfter.Location() != time.UTC && !notAfter.IsZero() {
			t.Errorf("it ends at %s", notAfter)
		}
	})
}
