package keys

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nkeys"
)

func (n *namespace) make(t *testing.T, users ...string) (log string, err error) {
	t.Helper()
	var buffer bytes.Buffer
	err = Make(t.Context(), Options{Secrets: n, NATSUsers: users, Random: rand.Reader, Logger: slog.New(slog.NewTextHandler(&buffer, nil))})
	return buffer.String(), err
}

// A watcher that listens on the network has its own keys.
func TestTheReceiverOfAuditsHasItsOwnKeys(t *testing.T) {
	for _, tt := range []struct {
		name  string
		users []string
		want  []string
	}{
		{
			"with the embedded NATS",
			[]string{"watcher", "actuator"},
			[]string{"keyturn-audit-fingerprint-key", "keyturn-fingerprint-key", "keyturn-nats-actuator", "keyturn-nats-audit", "keyturn-nats-watcher"},
		},
		{"with another NATS", nil, []string{"keyturn-audit-fingerprint-key", "keyturn-fingerprint-key"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &namespace{secrets: map[string]map[string]string{}}
			log := slog.New(slog.DiscardHandler)
			if err := Make(t.Context(), Options{Secrets: n, NATSUsers: tt.users, Audit: true, Random: rand.Reader, Logger: log}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, slices.Sorted(maps.Keys(n.secrets))); diff != "" {
				t.Fatalf("secrets (-want +got):\n%s", diff)
			}
			if n.secrets[auditSecret][fingerprintKey] == n.secrets[fingerprintSecret][fingerprintKey] {
				t.Error("both fingerprint keys are the same")
			}
		})
	}
}

func TestEachKeyIsWhatItsReaderExpects(t *testing.T) {
	n := &namespace{secrets: map[string]map[string]string{}}
	log, err := n.make(t, "watcher", "actuator", "reader")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"keyturn-fingerprint-key", "keyturn-nats-actuator", "keyturn-nats-reader", "keyturn-nats-watcher"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(n.secrets))); diff != "" {
		t.Fatalf("secrets (-want +got):\n%s", diff)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(n.secrets[fingerprintSecret][fingerprintKey], "\n"))
	if err != nil || len(key) != 32 {
		t.Errorf("fingerprint key: got %d bytes, %v, want 32", len(key), err)
	}
	for _, program := range []string{"watcher", "actuator", "reader"} {
		data := n.secrets[natsSecretPrefix+program]
		pair, err := nkeys.FromSeed([]byte(strings.TrimSuffix(data[program+".nk"], "\n")))
		if err != nil {
			t.Fatalf("the seed of the %s: %v", program, err)
		}
		if public, err := pair.PublicKey(); err != nil || public != data[publicKey] || !nkeys.IsValidPublicUserKey(public) {
			t.Errorf("the public key of the %s is not that of its seed: %v", program, err)
		}
	}
	for name, data := range n.secrets {
		for field, value := range data {
			if strings.Contains(log, strings.TrimSpace(value)) {
				t.Errorf("the log has %s of %s", field, name)
			}
		}
	}
}

func TestAKeyThatIsThereStaysAsItIs(t *testing.T) {
	n := &namespace{secrets: map[string]map[string]string{fingerprintSecret: {"mine": "of old"}}}
	if _, err := n.make(t, "watcher"); err != nil {
		t.Fatal(err)
	}
	before := maps.Clone(n.secrets)
	if _, err := n.make(t, "watcher"); err != nil {
		t.Fatal(err)
	}
	if n.secrets[fingerprintSecret]["mine"] != "of old" || len(n.secrets) != 2 {
		t.Errorf("the secrets are %v", slices.Sorted(maps.Keys(n.secrets)))
	}
	if !cmp.Equal(before, n.secrets) {
		t.Error("a second run changed a key")
	}
}

func TestWhatCouldNotBeMadeIsNamedAndMadeByTheNextRun(t *testing.T) {
	n := &namespace{secrets: map[string]map[string]string{}, broken: "keyturn-nats-watcher"}
	if _, err := n.make(t, "watcher", "actuator"); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "keyturn-nats-watcher") {
		t.Fatalf("got %v, want what is broken", err)
	}
	key := n.secrets[fingerprintSecret][fingerprintKey]
	n.broken = ""
	if _, err := n.make(t, "watcher", "actuator"); err != nil || len(n.secrets) != 3 {
		t.Fatalf("got %d secrets, %v", len(n.secrets), err)
	}
	if n.secrets[fingerprintSecret][fingerprintKey] != key {
		t.Error("the second run made another fingerprint key")
	}
}

func TestRandomnessThatEndsMakesNoKey(t *testing.T) {
	n := &namespace{secrets: map[string]map[string]string{}}
	err := Make(t.Context(), Options{Secrets: n, Random: strings.NewReader("short"), Logger: slog.New(slog.DiscardHandler)})
	if err == nil || len(n.secrets) > 0 {
		t.Errorf("got %v and %d secrets, want an error and none", err, len(n.secrets))
	}
}
