package embedded

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

// tlsOptions are the options for the certificate of the NATS server of a namespace, at the given time.
func (n *namespace) tlsOptions(namespace string, at time.Time, log io.Writer) KeyOptions {
	return KeyOptions{
		Secrets: n, Updates: n, TLSNamespace: namespace, Now: func() time.Time { return at }, Random: rand.Reader,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
}

// makeTLS runs the command for the certificate of the NATS server at the given time.
func (n *namespace) makeTLS(t *testing.T, at time.Time) (log string, err error) {
	t.Helper()
	var buffer bytes.Buffer
	err = n.tlsOptions("keyturn-system", at, &buffer).makeNATSTLS(t.Context())
	for name, data := range n.secrets {
		for file, content := range data {
			text := buffer.String()
			if err != nil {
				text += err.Error()
			}
			if line := strings.Split(content, "\n"); len(line) > 2 && strings.Contains(text, line[1]) {
				t.Errorf("the log or the error has %s of %s", file, name)
			}
		}
	}
	return buffer.String(), err
}

// newInstallation returns the Secrets of an installation made at the time installed.
func newInstallation(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{secrets: map[string]map[string]string{}}
	testkit.Must(t, errIn(n.makeTLS(t, installed)))
	return n
}

// trusts returns why a client that has the CAs of a file does not trust the server with the certificate of a Secret, by the
// given name and at the given time.
func trusts(t *testing.T, cas, server map[string]string, name string, at time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(cas[caFile])) {
		t.Fatal("there is no CA in the file of the clients")
	}
	pair, err := tls.X509KeyPair([]byte(server[certificateFile]), []byte(server[keyFile]))
	testkit.Must(t, err)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: at})
	return err
}

func TestAClientTrustsTheServerByEachOfItsNames(t *testing.T) {
	n := newInstallation(t)
	server := n.secrets[natsTLSSecret]
	for _, tt := range []struct {
		name, host string
		at         time.Time
		trusted    bool
	}{
		{"by the Service, in its namespace", "keyturn-nats", installed, true},
		{"by the Service, as the watcher does", "keyturn-nats.keyturn-system.svc", installed, true},
		{"by the full name of the Service", "keyturn-nats.keyturn-system.svc.cluster.local", installed, true},
		{"in a pod with IPv6", "::1", installed, true},
		{"on a node whose clock is late", "keyturn-nats", installed.Add(-30 * time.Minute), true},
		{"in almost three years", "keyturn-nats", installed.AddDate(3, 0, -1), true},
		{"after three years", "keyturn-nats", installed.AddDate(3, 0, 1), false},
		{"by the Service of another namespace", "keyturn-nats.elsewhere.svc", installed, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := trusts(t, server, server, tt.host, tt.at); (err == nil) != tt.trusted {
				t.Errorf("trusted: got %v, want %t", err, tt.trusted)
			}
		})
	}
	for name, want := range map[string]corev1.SecretType{natsCASecret: corev1.SecretTypeTLS, natsTLSSecret: corev1.SecretTypeTLS} {
		if got := n.created[name]; got != want {
			t.Errorf("type of %s: got %q, want %q, which cert-manager takes over", name, got, want)
		}
	}
	leaf := parse(t, server[certificateFile])
	if leaf.IsCA || !cmp.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
		t.Errorf("the certificate is good for more than a server: %v", leaf.ExtKeyUsage)
	}
	if _, err := tls.X509KeyPair([]byte(server[caFile]), []byte(server[keyFile])); err == nil {
		t.Error("the server has the key of the CA")
	}
}

// day returns a time the given number of days after the installation.
func day(n int) time.Time { return installed.AddDate(0, 0, n) }

func TestALaterRunRenewsWhatIsDue(t *testing.T) {
	for _, tt := range []struct {
		name string
		// change is what happens to the Secrets before the run.
		change func(n *namespace)
		at     time.Time
		// ca, certificate and bundle say what is new after the run, and log is a part of its log.
		ca, certificate, bundle bool
		log                     string
	}{
		{"nothing while half of the time is left", nil, day(540), false, false, false, "certificate is valid, left unchanged"},
		{"the certificate when less than half of its time is left", nil, day(550), false, true, false, "less than half of its time is left"},
		{"the certificate after its end", nil, day(4 * 365), false, true, false, "less than half of its time is left"},
		{"the CA when it would end before a new certificate", nil, installed.AddDate(7, 0, 1), true, true, true, "it would end before a new"},
		{"both when a clock that was ahead has made them", nil, installed.AddDate(-1, 0, 0), true, true, true, "it is not valid yet"},
		{"the certificate that was deleted", func(n *namespace) { delete(n.secrets, natsTLSSecret) }, day(1), false, true, false, "key created"},
		{
			"a file of CAs that somebody has cut off", func(n *namespace) {
				data := maps.Clone(n.secrets[natsTLSSecret])
				data[caFile] = data[caFile][:200]
				n.set(natsTLSSecret, data)
			}, day(1), false, false, false, "there is another ca",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newInstallation(t)
			before := maps.Clone(n.secrets)
			if tt.change != nil {
				tt.change(n)
			}
			log, err := n.makeTLS(t, tt.at)
			if err != nil || !strings.Contains(log, tt.log) {
				t.Errorf("got %v and the log\n%s\nwant %q in it", err, log, tt.log)
			}
			after := n.secrets[natsTLSSecret]
			for name, changed := range map[string]struct{ got, want bool }{
				"ca":          {n.secrets[natsCASecret][keyFile] != before[natsCASecret][keyFile], tt.ca},
				"certificate": {after[keyFile] != before[natsTLSSecret][keyFile], tt.certificate},
				"bundle":      {after[caFile] != before[natsTLSSecret][caFile], tt.bundle},
			} {
				if changed.got != changed.want {
					t.Errorf("new %s: got %t, want %t", name, changed.got, changed.want)
				}
			}
			if after[caFile] != n.secrets[natsCASecret][certificateFile] {
				t.Error("clients do not trust the CAs of the Secret of the CA")
			}
			if err := trusts(t, after, after, "keyturn-nats.keyturn-system.svc", tt.at); err != nil {
				t.Errorf("a client does not trust the server: %v", err)
			}
			versions := maps.Clone(n.versions)
			if log, err := n.makeTLS(t, tt.at); err != nil || !maps.Equal(versions, n.versions) {
				t.Errorf("a further run: got %v, want nothing written; its log:\n%s", err, log)
			}
		})
	}
}

func TestACertificateOfAnotherNamespaceIsRenewed(t *testing.T) {
	n := newInstallation(t)
	before := n.secrets[natsTLSSecret][certificateFile]
	var log bytes.Buffer
	err := n.tlsOptions("elsewhere", day(1), &log).makeNATSTLS(t.Context())
	after := n.secrets[natsTLSSecret]
	if err != nil || after[certificateFile] == before || !strings.Contains(log.String(), "it lacks a name of the server") {
		t.Fatalf("got %v and the log\n%s\nwant another certificate", err, log.String())
	}
	if err := trusts(t, after, after, "keyturn-nats.elsewhere.svc", day(1)); err != nil {
		t.Errorf("a client does not trust the server: %v", err)
	}
}

// A client has the old file until its kubelet has noticed the new one, and likewise the server the old certificate.
func TestARenewedCAIsTrustedBeforeACertificateNeedsIt(t *testing.T) {
	n := newInstallation(t)
	const name = "keyturn-nats.keyturn-system.svc"
	sixYears, later := installed.AddDate(6, 6, 0), installed.AddDate(7, 1, 0)
	for _, at := range []time.Time{sixYears, later} {
		testkit.Must(t, errIn(n.makeTLS(t, at)))
		if at.Equal(sixYears) {
			n.set("before", n.secrets[natsTLSSecret])
		}
	}
	before, after := n.secrets["before"], n.secrets[natsTLSSecret]
	if len(after[caFile]) < len(before[caFile])*3/2 || before[keyFile] != after[keyFile] {
		t.Fatal("the second run has not renewed the CA alone")
	}
	if err := trusts(t, before, after, name, later); err != nil {
		t.Errorf("a client with the old file does not trust the server: %v", err)
	}
	if err := trusts(t, after, before, name, later); err != nil {
		t.Errorf("a client with the new file does not trust the old certificate: %v", err)
	}
	// The next run signs with the new CA, which every client trusts by then.
	last := installed.AddDate(8, 2, 0)
	testkit.Must(t, errIn(n.makeTLS(t, last)))
	if n.secrets[natsTLSSecret][keyFile] == after[keyFile] {
		t.Fatal("the third run has not renewed the certificate")
	}
	if err := trusts(t, after, n.secrets[natsTLSSecret], name, last); err != nil {
		t.Errorf("a client with the file of the second run does not trust the certificate of the third: %v", err)
	}
}

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
		{"a bundle whose second CA is cut off", damage(natsCASecret, certificateFile, func(c string) string { return c + half(c) }), deleteCA + "tls.crt has"},
		{
			"the key of another CA", damage(natsCASecret, keyFile, func(string) string { return other.secrets[natsCASecret][keyFile] }),
			deleteCA + "tls.key is not",
		},
		{"a CA that is none", func(n *namespace) { n.set(natsCASecret, n.secrets[natsTLSSecret]) }, deleteCA + "tls.crt does not begin"},
		{"a certificate that is cut off", damage(natsTLSSecret, certificateFile, half), deleteTLS + "tls.crt has"},
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
			testkit.Must(t, errIn(n.makeTLS(t, day(1))))
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
	testkit.Must(f, err)
	authority, err := ca.data()
	testkit.Must(f, err)
	certificate, key, err := ca.issue(rand.Reader, installed, x509.Certificate{NotAfter: natsTLSEnd(installed)})
	testkit.Must(f, err)
	f.Add(authority[certificateFile], authority[keyFile])
	f.Add(certificate, key)
	f.Add(certificate+authority[certificateFile], key)
	f.Add("", "")
	f.Fuzz(func(t *testing.T, certificate, key string) {
		data := map[string][]byte{certificateFile: []byte(certificate), keyFile: []byte(key)}
		if read, err := parseNATSCA(data); err == nil {
			again, err := read.data()
			testkit.Must(t, err)
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

func TestARunThatAnotherOneGotAheadOfTakesItsResult(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(n *namespace)
		at     time.Time
	}{
		{"when the certificate is lost", func(n *namespace) { delete(n.secrets, natsTLSSecret) }, installed},
		{"when the certificate is due", func(*namespace) {}, day(600)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newInstallation(t)
			tt.before(n)
			var others map[string]map[string]string
			n.meanwhile = func(string) {
				if _, err := n.makeTLS(t, tt.at); err != nil {
					t.Error(err)
				}
				others = maps.Clone(n.secrets)
			}
			testkit.Must(t, errIn(n.makeTLS(t, tt.at)))
			if others == nil || !cmp.Equal(others, n.secrets) {
				t.Error("the run has written what the other one had written already")
			}
		})
	}
}

func TestASecretThatIsDeletedMeanwhileIsMadeAgain(t *testing.T) {
	n := newInstallation(t)
	n.meanwhile = func(name string) { delete(n.secrets, name) }
	testkit.Must(t, errIn(n.makeTLS(t, day(600))))
	if err := trusts(t, n.secrets[natsTLSSecret], n.secrets[natsTLSSecret], "keyturn-nats", day(600)); err != nil {
		t.Error(err)
	}
}
