package keys

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestARunThatAnotherOneGotAheadOfTakesItsResult(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(n *namespace)
		at     time.Time
	}{
		{"at the installation", func(n *namespace) { clear(n.secrets) }, installed},
		{"when the certificate is lost", func(n *namespace) { delete(n.secrets, natsTLSSecret) }, installed},
		{"when the certificate is due", func(*namespace) {}, day(600)},
		{"when the CA is due", func(*namespace) {}, installed.AddDate(8, 0, 0)},
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
			if _, err := n.makeTLS(t, tt.at); err != nil {
				t.Fatal(err)
			}
			if others == nil || !cmp.Equal(others, n.secrets) {
				t.Error("the run has written what the other one had written already")
			}
		})
	}
}

func TestASecretThatIsDeletedMeanwhileIsMadeAgain(t *testing.T) {
	n := newInstallation(t)
	n.meanwhile = func(name string) { delete(n.secrets, name) }
	if _, err := n.makeTLS(t, day(600)); err != nil {
		t.Fatal(err)
	}
	if err := trusts(t, n.secrets[natsTLSSecret], n.secrets[natsTLSSecret], "keyturn-nats", day(600)); err != nil {
		t.Error(err)
	}
}

func TestManyRunsAtOnceAgree(t *testing.T) {
	n := &namespace{secrets: map[string]map[string]string{}}
	for _, at := range []time.Time{installed, day(600), installed.AddDate(8, 0, 0)} {
		var runs sync.WaitGroup
		for range 8 {
			runs.Go(func() {
				err := Options{
					Secrets: n, Updates: n, TLSNamespace: "keyturn-system", Now: func() time.Time { return at }, Random: rand.Reader,
					Logger: slog.New(slog.DiscardHandler),
				}.makeNATSTLS(t.Context())
				if err != nil {
					t.Error(err)
				}
			})
		}
		runs.Wait()
		server := n.secrets[natsTLSSecret]
		if server[caFile] != n.secrets[natsCASecret][certificateFile] {
			t.Error("clients do not trust the CAs of the Secret of the CA")
		}
		if err := trusts(t, server, server, "keyturn-nats", at); err != nil {
			t.Error(err)
		}
	}
	if want := map[string]int{natsCASecret: 2, natsTLSSecret: 3}; !cmp.Equal(want, n.versions) {
		t.Errorf("writes: got %v, want %v", n.versions, want)
	}
}

func TestWhatCannotBeReadOrWrittenIsAnErrorThatNamesIt(t *testing.T) {
	n := newInstallation(t)
	n.broken = natsTLSSecret
	if _, err := n.makeTLS(t, day(1)); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "reading secret keyturn-nats-tls: ") {
		t.Errorf("reading: got %v", err)
	}
	n = &namespace{secrets: map[string]map[string]string{}, broken: natsCASecret}
	if _, err := n.makeTLS(t, day(1)); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "secret keyturn-nats-ca: ") || len(n.secrets) > 0 {
		t.Errorf("got %v and %d Secrets", err, len(n.secrets))
	}
}
