package keys

import (
	"crypto/rand"
	"crypto/x509"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestACertificateOfSomebodyElseIsNeverTouched(t *testing.T) {
	elsewhere := newInstallation(t).secrets[natsTLSSecret]
	for _, tt := range []struct {
		name   string
		theirs map[string]string
		ca     bool
	}{
		{"one of cert-manager, without a CA of ours", elsewhere, false},
		{"one of another CA, beside ours", elsewhere, true},
		{"one without the file of CAs", map[string]string{certificateFile: elsewhere[certificateFile], keyFile: elsewhere[keyFile]}, true},
		{"one that is empty", map[string]string{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newInstallation(t)
			n.set(natsTLSSecret, tt.theirs)
			if !tt.ca {
				delete(n.secrets, natsCASecret)
			}
			before, versions := maps.Clone(n.secrets), maps.Clone(n.versions)
			log, err := n.makeTLS(t, installed.AddDate(20, 0, 0))
			if err != nil || !strings.Contains(log, "is not signed by the ca of this command, left unchanged") {
				t.Errorf("got %v and the log\n%s\nwant to be told", err, log)
			}
			if !cmp.Equal(before, n.secrets) || !cmp.Equal(versions, n.versions) {
				t.Error("a Secret was written")
			}
		})
	}
}

// After a migration from cert-manager, or from an own certificate, nobody renews the old certificate.
func TestACertificateOfSomebodyElseIsReportedWithItsEnd(t *testing.T) {
	theirs := newInstallation(t).secrets[natsTLSSecret]
	for _, tt := range []struct {
		name, level, says string
		theirs            map[string]string
		at                time.Time
	}{
		{"a new one", "level=WARN", "until=" + natsTLSEnd(installed).Format(time.DateOnly), theirs, day(1)},
		{"one of which less than half is left", "level=ERROR", "until=" + natsTLSEnd(installed).Format(time.DateOnly), theirs, day(600)},
		{"one that has ended", "level=ERROR", "until=" + natsTLSEnd(installed).Format(time.DateOnly), theirs, day(3000)},
		{"none that can be read", "level=ERROR", "err=", map[string]string{}, day(1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newInstallation(t)
			delete(n.secrets, natsCASecret)
			n.set(natsTLSSecret, tt.theirs)
			log, err := n.makeTLS(t, tt.at)
			if err != nil || !strings.Contains(log, tt.level) || !strings.Contains(log, tt.says) {
				t.Errorf("got %v and the log\n%s\nwant %s and %s", err, log, tt.level, tt.says)
			}
		})
	}
}

func TestADamagedSecretIsAnErrorThatSaysWhatToDo(t *testing.T) {
	other := newInstallation(t)
	damage := func(secret, file string, change func(content string) string) func(n *namespace) {
		return func(n *namespace) {
			data := maps.Clone(n.secrets[secret])
			data[file] = change(data[file])
			n.set(secret, data)
		}
	}
	half := func(content string) string { return content[:len(content)/2] }
	deleteCA := "secret keyturn-nats-ca is damaged, delete it and the secret keyturn-nats-tls, and run this again: "
	deleteTLS := "secret keyturn-nats-tls is damaged, delete it and run this again: "
	for _, tt := range []struct {
		name   string
		change func(n *namespace)
		want   string
	}{
		{"a CA that is cut off", damage(natsCASecret, certificateFile, half), deleteCA + "tls.crt has"},
		{"a bundle whose second CA is cut off", damage(natsCASecret, certificateFile, func(c string) string { return c + half(c) }), deleteCA + "tls.crt has"},
		{"a key of a CA that is cut off", damage(natsCASecret, keyFile, half), deleteCA + "tls.key is not"},
		{
			"the key of another CA", damage(natsCASecret, keyFile, func(string) string { return other.secrets[natsCASecret][keyFile] }),
			deleteCA + "tls.key is not",
		},
		{"a CA that is none", func(n *namespace) { n.set(natsCASecret, n.secrets[natsTLSSecret]) }, deleteCA + "tls.crt does not begin"},
		{"a Secret of the CA without data", func(n *namespace) { n.set(natsCASecret, nil) }, deleteCA + "tls.crt has"},
		{"a certificate that is cut off", damage(natsTLSSecret, certificateFile, half), deleteTLS + "tls.crt has"},
		{
			"no certificate in PEM", damage(natsTLSSecret, certificateFile, func(string) string {
				return "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
			}), deleteTLS + "tls.crt has",
		},
		{"a key that is cut off", damage(natsTLSSecret, keyFile, half), deleteTLS + "tls.key is not"},
		{
			"the key of another certificate", damage(natsTLSSecret, keyFile, func(string) string { return other.secrets[natsTLSSecret][keyFile] }),
			deleteTLS + "tls.key is not",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newInstallation(t)
			tt.change(n)
			before := maps.Clone(n.versions)
			_, err := n.makeTLS(t, day(1))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v, want one line with %q", err, tt.want)
			}
			if !maps.Equal(before, n.versions) {
				t.Error("a Secret was written")
			}
			// Doing what the error says helps.
			if strings.HasPrefix(tt.want, deleteCA) {
				delete(n.secrets, natsCASecret)
			}
			delete(n.secrets, natsTLSSecret)
			if _, err := n.makeTLS(t, day(1)); err != nil {
				t.Fatal(err)
			}
			if err := trusts(t, n.secrets[natsTLSSecret], n.secrets[natsTLSSecret], "keyturn-nats", day(1)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnImmutableSecretIsAnErrorOnceItIsDue(t *testing.T) {
	for secret, due := range map[string]time.Time{natsTLSSecret: day(600), natsCASecret: installed.AddDate(8, 0, 0)} {
		n := newInstallation(t)
		n.immutable = secret
		if _, err := n.makeTLS(t, day(1)); err != nil {
			t.Errorf("%s: got %v before it is due", secret, err)
		}
		want := "secret " + secret + " must be renewed"
		if _, err := n.makeTLS(t, due); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "is immutable") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func FuzzParseSecretsOfTLS(f *testing.F) {
	ca, err := newNATSCA(rand.Reader, installed, nil)
	if err != nil {
		f.Fatal(err)
	}
	authority, err := ca.data()
	if err != nil {
		f.Fatal(err)
	}
	certificate, key, err := ca.issue(rand.Reader, installed, x509.Certificate{NotAfter: natsTLSEnd(installed)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(authority[certificateFile], authority[keyFile])
	f.Add(certificate, key)
	f.Add(certificate+authority[certificateFile], key)
	f.Add("", "")
	f.Fuzz(func(t *testing.T, certificate, key string) {
		data := map[string][]byte{certificateFile: []byte(certificate), keyFile: []byte(key)}
		if read, err := parseNATSCA(data); err == nil {
			again, err := read.data()
			if err != nil {
				t.Fatal(err)
			}
			other, err := parseNATSCA(map[string][]byte{certificateFile: []byte(again[certificateFile]), keyFile: []byte(again[keyFile])})
			if err != nil || other.bundle() != read.bundle() {
				t.Errorf("what was read and written cannot be read: %v", err)
			}
		}
		if leaf, ours, err := ca.parseCertificate(data); ours && (leaf == nil || err != nil) {
			t.Errorf("a certificate of the CA that is none: %v", err)
		}
	})
}
