package embedded

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nkeys"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/tests/testkit"
)

func (n *namespace) make(t *testing.T, users ...string) (log string, err error) {
	t.Helper()
	var buffer bytes.Buffer
	err = MakeKeys(t.Context(), KeyOptions{Secrets: n, NATSUsers: users, Random: rand.Reader, Logger: slog.New(slog.NewTextHandler(&buffer, nil))})
	return buffer.String(), err
}

// A watcher that listens on the network has its own keys.
func TestTheReceiverOfAuditsHasItsOwnKeys(t *testing.T) {
	for want, users := range map[string][]string{
		"keyturn-audit-fingerprint-key keyturn-fingerprint-key keyturn-nats-actuator keyturn-nats-audit keyturn-nats-watcher": {"watcher", "actuator"},
		"keyturn-audit-fingerprint-key keyturn-fingerprint-key":                                                               nil, // with another NATS
	} {
		n := &namespace{secrets: map[string]map[string]string{}}
		err := MakeKeys(t.Context(), KeyOptions{Secrets: n, NATSUsers: users, Audit: true, Random: rand.Reader, Logger: slog.New(slog.DiscardHandler)})
		testkit.Must(t, err)
		if diff := cmp.Diff(want, strings.Join(slices.Sorted(maps.Keys(n.secrets)), " ")); diff != "" {
			t.Fatalf("secrets (-want +got):\n%s", diff)
		}
		if n.secrets[auditSecret][fingerprintKey] == n.secrets[fingerprintSecret][fingerprintKey] {
			t.Error("both fingerprint keys are the same")
		}
	}
}

func TestEachKeyIsWhatItsReaderExpects(t *testing.T) {
	n := &namespace{secrets: map[string]map[string]string{}}
	log, err := n.make(t, "watcher", "actuator", "reader")
	testkit.Must(t, err)
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
	testkit.Must(t, errIn(n.make(t, "watcher")))
	before := maps.Clone(n.secrets)
	testkit.Must(t, errIn(n.make(t, "watcher")))
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
	err := MakeKeys(t.Context(), KeyOptions{Secrets: n, Random: strings.NewReader("short"), Logger: slog.New(slog.DiscardHandler)})
	if err == nil || len(n.secrets) > 0 {
		t.Errorf("got %v and %d secrets, want an error and none", err, len(n.secrets))
	}
}

// namespace fakes the Secrets of a namespace: their data, and the resourceVersion that an update must have.
type namespace struct {
	mu       sync.Mutex
	secrets  map[string]map[string]string
	versions map[string]int
	// broken is the name of a Secret that can be neither created nor read, and immutable of one that cannot be updated.
	broken, immutable string
	// created has the type of each Secret that was created.
	created map[string]corev1.SecretType
	// meanwhile is called before a Secret is written, as if by another run.
	meanwhile func(name string)
}

var errBroken = errors.New("etcd is away")

var secretsResource = schema.GroupResource{Resource: "secrets"}

func (n *namespace) interrupt(name string) {
	if meanwhile := n.meanwhile; meanwhile != nil {
		n.meanwhile = nil
		meanwhile(name)
	}
}

// set writes a Secret, as an administrator can.
func (n *namespace) set(name string, data map[string]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.store(name, data)
}

func (n *namespace) store(name string, data map[string]string) {
	if n.versions == nil {
		n.versions, n.created = map[string]int{}, map[string]corev1.SecretType{}
	}
	n.secrets[name] = data
	n.versions[name]++
}

func (n *namespace) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	n.interrupt(secret.Name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if secret.Name == n.broken {
		return nil, errBroken
	}
	if _, ok := n.secrets[secret.Name]; ok {
		return nil, apierrors.NewAlreadyExists(secretsResource, secret.Name)
	}
	n.store(secret.Name, secret.StringData)
	n.created[secret.Name] = secret.Type
	return secret, nil
}

func (n *namespace) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name == n.broken {
		return nil, errBroken
	}
	data, ok := n.secrets[name]
	if !ok {
		return nil, apierrors.NewNotFound(secretsResource, name)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(n.versions[name])}, Data: map[string][]byte{},
		Immutable: new(name == n.immutable),
	}
	for file, content := range data {
		secret.Data[file] = []byte(content)
	}
	return secret, nil
}

func (n *namespace) Update(_ context.Context, secret *corev1.Secret, _ metav1.UpdateOptions) (*corev1.Secret, error) {
	n.interrupt(secret.Name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.secrets[secret.Name]; !ok {
		return nil, apierrors.NewNotFound(secretsResource, secret.Name)
	}
	if secret.ResourceVersion != strconv.Itoa(n.versions[secret.Name]) {
		return nil, apierrors.NewConflict(secretsResource, secret.Name, errors.New("the object has been modified"))
	}
	data := map[string]string{}
	for file, content := range secret.Data {
		data[file] = string(content)
	}
	n.store(secret.Name, data)
	return secret, nil
}
