// Package keys creates the keys of a new installation: the fingerprint key, a NATS user for each program, and, for several actuators,
// the certificate of the routes between their NATS servers.
//
// Each key is one Secret, created in one request, so no key is ever incomplete. An existing Secret is never changed, whatever it
// contains, so repeated and concurrent runs are harmless. The only permission needed is to create Secrets in one namespace;
// nothing is read.
package keys

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/nats-io/nkeys"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The names of the Secrets and of their data keys.
const (
	// fingerprintSecret has the watcher's key file under fingerprintKey.
	fingerprintSecret = "keyturn-fingerprint-key"
	fingerprintKey    = "keys"
	// natsSecretPrefix and the name of a program make the name of the Secret with its NATS user: the seed is under
	// <program>.nk, the public key, which the server needs, under publicKey.
	natsSecretPrefix = "keyturn-nats-"
	publicKey        = "public"
)

// fingerprintBytes is the size of the fingerprint key: the output of SHA-256.
const fingerprintBytes = 32

// secretCreator creates Secrets in one namespace. client-go's SecretInterface implements it.
type secretCreator interface {
	Create(ctx context.Context, secret *corev1.Secret, opts metav1.CreateOptions) (*corev1.Secret, error)
}

// Options configure Make.
type Options struct {
	// Secrets creates the Secrets. Required.
	Secrets secretCreator
	// NATSUsers are the programs that need a NATS user. Empty if the users of NATS are managed elsewhere.
	NATSUsers []string
	// RoutesNamespace is the namespace of the actuators whose NATS servers need a certificate for the routes between them. Empty: none.
	RoutesNamespace string
	// Now is the clock for the validity of that certificate: time.Now, except in tests. Required with RoutesNamespace.
	Now func() time.Time
	// Random is the source of the keys: crypto/rand.Reader, except in tests. Required.
	Random io.Reader
	// Logger logs which keys were created and which existed. Required.
	Logger *slog.Logger
}

// Make creates the keys that do not exist yet. An error names the Secret that could not be created; a repeated call continues
// there.
func Make(ctx context.Context, opts Options) error {
	fingerprint := make([]byte, fingerprintBytes)
	if _, err := io.ReadFull(opts.Random, fingerprint); err != nil {
		return fmt.Errorf("generating the fingerprint key: %w", err)
	}
	file := base64.StdEncoding.EncodeToString(fingerprint) + "\n"
	if err := opts.create(ctx, fingerprintSecret, map[string]string{fingerprintKey: file}); err != nil {
		return err
	}
	for _, program := range opts.NATSUsers {
		user, err := newUser(opts.Random, program)
		if err != nil {
			return fmt.Errorf("generating the nats user of the %s: %w", program, err)
		}
		if err := opts.create(ctx, natsSecretPrefix+program, user); err != nil {
			return err
		}
	}
	if opts.RoutesNamespace == "" {
		return nil
	}
	certificate, err := newRoutesCertificate(opts.Random, opts.Now(), opts.RoutesNamespace)
	if err != nil {
		return fmt.Errorf("generating the certificate of the nats routes: %w", err)
	}
	return opts.create(ctx, routesSecret, certificate)
}

// newUser returns the data of the Secret of a new NATS user.
func newUser(random io.Reader, program string) (map[string]string, error) {
	pair, err := nkeys.CreatePairWithRand(nkeys.PrefixByteUser, random)
	if err != nil {
		return nil, err
	}
	defer pair.Wipe()
	seed, err := pair.Seed()
	if err != nil {
		return nil, err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	return map[string]string{program + ".nk": string(seed) + "\n", publicKey: public}, nil
}

// create creates a Secret, unless there is one of that name.
func (o Options) create(ctx context.Context, name string, data map[string]string) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/part-of": "keyturn"}},
		StringData: data,
	}
	_, err := o.Secrets.Create(ctx, secret, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		o.Logger.InfoContext(ctx, "key exists, left unchanged", "secret", name)
		return nil
	case err != nil:
		return fmt.Errorf("creating secret %s: %w", name, err)
	}
	o.Logger.InfoContext(ctx, "key created", "secret", name)
	return nil
}
