package embedded

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// secretCreator creates Secrets in one namespace. client-go's SecretInterface implements it as well as secretUpdater.
type secretCreator interface {
	Create(ctx context.Context, secret *corev1.Secret, opts metav1.CreateOptions) (*corev1.Secret, error)
}

// secretUpdater reads and updates Secrets in one namespace.
type secretUpdater interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Secret, error)
	Update(ctx context.Context, secret *corev1.Secret, opts metav1.UpdateOptions) (*corev1.Secret, error)
}

// create creates a Secret of this package.
func (o KeyOptions) create(ctx context.Context, name string, kind corev1.SecretType, data map[string]string) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/part-of": "keyturn"}}, Type: kind, StringData: data,
	}
	if _, err := o.Secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating secret %s: %w", name, err)
	}
	o.Logger.InfoContext(ctx, "key created", "secret", name)
	return nil
}

// ensure creates a Secret with a key, unless one with that name exists.
func (o KeyOptions) ensure(ctx context.Context, name string, data map[string]string) error {
	err := o.create(ctx, name, corev1.SecretTypeOpaque, data)
	if apierrors.IsAlreadyExists(err) {
		o.Logger.InfoContext(ctx, "key exists, left unchanged", "secret", name)
		return nil
	}
	return err
}

// keyBytes is the size of a fingerprint key, the output of SHA-256, and of the key of the storage, from which the server derives an AES-256 key for
// each stream.
const keyBytes = 32

// makeKey creates a Secret that contains a key file with a new key under a name.
func (o KeyOptions) makeKey(ctx context.Context, secret, name string) error {
	key := make([]byte, keyBytes)
	if _, err := io.ReadFull(o.Random, key); err != nil {
		return fmt.Errorf("generating the key of %s: %w", secret, err)
	}
	return o.ensure(ctx, secret, map[string]string{name: base64.StdEncoding.EncodeToString(key) + "\n"})
}

// get returns a Secret, or nil if there is none.
func (o KeyOptions) get(ctx context.Context, name string) (*corev1.Secret, error) {
	secret, err := o.Updates.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // nothing is there
	case err != nil:
		return nil, fmt.Errorf("reading secret %s: %w", name, err)
	}
	return secret, nil
}

// put creates a Secret with a certificate, or updates the data of one that was read, if it has not changed since. It keeps all other fields.
func (o KeyOptions) put(ctx context.Context, read *corev1.Secret, name string, data map[string]string, why renewal) error {
	if read == nil {
		return o.create(ctx, name, corev1.SecretTypeTLS, data)
	}
	if read.Immutable != nil && *read.Immutable {
		return fmt.Errorf("secret %s must be renewed (%s), but is immutable: delete it and run this again", name, why)
	}
	secret := read.DeepCopy()
	for file, content := range data {
		secret.Data[file] = []byte(content)
	}
	if _, err := o.Updates.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("updating secret %s: %w", name, err)
	}
	o.Logger.InfoContext(ctx, "key renewed", "secret", name, "reason", why)
	return nil
}

// KeyOptions configure MakeKeys.
type KeyOptions struct {
	Secrets secretCreator // creates the Secrets; required
	// NATSUsers are the names of the NATS users: of the programs, and of readers of the streams. Empty if they are managed elsewhere.
	NATSUsers []string
	// Storage also creates the key with which the NATS server encrypts its storage.
	Storage bool
	// Audit also creates the keys of a watcher that only receives the audit of secret stores: a fingerprint key, and a NATS user if NATSUsers is not
	// empty. The watcher has its own keys, because an attacker who takes over a watcher that listens on the network must not learn the keys of the
	// others.
	Audit bool
	// RoutesNamespace is the namespace of the actuators whose NATS servers need a certificate for the routes between them. Empty if none do.
	RoutesNamespace string
	// TLSNamespace is the namespace of the actuator whose NATS server needs a certificate for its clients. Empty if none does.
	TLSNamespace string
	Updates      secretUpdater // reads and updates the Secrets of that certificate and of its CA; required with TLSNamespace
	// Now is the clock for the validity of certificates: time.Now, except in tests. Required with RoutesNamespace and TLSNamespace.
	Now    func() time.Time
	Random io.Reader    // the source of the keys: crypto/rand.Reader, except in tests; required
	Logger *slog.Logger // logs which keys were created and which existed; required
}
