package keys

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// makeTLS runs the command for the certificate of the NATS server at the given time.
func (n *namespace) makeTLS(t *testing.T, at time.Time) (log string, err error) {
	t.Helper()
	var buffer bytes.Buffer
	err = Options{
		Secrets: n, Updates: n, TLSNamespace: "keyturn-system", Now: func() time.Time { return at }, Random: rand.Reader,
		Logger: slog.New(slog.NewTextHandler(&buffer, nil)),
	}.makeNATSTLS(t.Context())
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
	if _, err := n.makeTLS(t, installed); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
		{"by the Service, in another namespace", "keyturn-nats.keyturn-system", installed, true},
		{"by the Service, as the watcher does", "keyturn-nats.keyturn-system.svc", installed, true},
		{"by the full name of the Service", "keyturn-nats.keyturn-system.svc.cluster.local", installed, true},
		{"through a port-forward", "localhost", installed, true},
		{"in the pod", "127.0.0.1", installed, true},
		{"in a pod with IPv6", "::1", installed, true},
		{"on a node whose clock is late", "keyturn-nats", installed.Add(-30 * time.Minute), true},
		{"in almost three years", "keyturn-nats", installed.AddDate(3, 0, -1), true},
		{"after three years", "keyturn-nats", installed.AddDate(3, 0, 1), false},
		{"on a node whose clock is late by a day", "keyturn-nats", installed.AddDate(0, 0, -1), false},
		{"by the Service of another namespace", "keyturn-nats.elsewhere.svc", installed, false},
		{"by another name", "kubernetes.default.svc", installed, false},
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
		{"nothing on the next day", nil, day(1), false, false, false, "certificate is valid, left unchanged"},
		{"nothing while half of the time is left", nil, day(540), false, false, false, "certificate is valid, left unchanged"},
		{"the certificate when less than half of its time is left", nil, day(550), false, true, false, "less than half of its time is left"},
		{"the certificate after its end", nil, day(4 * 365), false, true, false, "less than half of its time is left"},
		{"the certificate while the CA lasts as long as a new one", nil, installed.AddDate(7, 0, -1), false, true, false, "less than half"},
		{
			"the CA when it would end before a new certificate", nil, installed.AddDate(7, 0, 1), true, true, true,
			"it would end before a new certificate",
		},
		{"both after the end of the CA", nil, installed.AddDate(11, 0, 0), true, true, true, "it would end before a new certificate"},
		{"both when a clock that was ahead has made them", nil, installed.AddDate(-1, 0, 0), true, true, true, "it is not valid yet"},
		{"the certificate that was deleted", func(n *namespace) { delete(n.secrets, natsTLSSecret) }, day(1), false, true, false, "key created"},
		{
			"both that were deleted", func(n *namespace) { clear(n.secrets) }, day(1), true, true, true, "key created",
		},
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
	err := Options{
		Secrets: n, Updates: n, TLSNamespace: "elsewhere", Now: func() time.Time { return day(1) }, Random: rand.Reader,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}.makeNATSTLS(t.Context())
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
		if _, err := n.makeTLS(t, at); err != nil {
			t.Fatal(err)
		}
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
	if _, err := n.makeTLS(t, last); err != nil {
		t.Fatal(err)
	}
	if n.secrets[natsTLSSecret][keyFile] == after[keyFile] {
		t.Fatal("the third run has not renewed the certificate")
	}
	if err := trusts(t, after, n.secrets[natsTLSSecret], name, last); err != nil {
		t.Errorf("a client with the file of the second run does not trust the certificate of the third: %v", err)
	}
}
