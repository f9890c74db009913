// Package keys makes the keys that an installation begins with: the one that content is fingerprinted under, and a NATS user for
// each program.
//
// A key is made once. Each is in a Secret, which holds all that belongs to it and is created in one request, so that there is
// never half a key. A Secret that is there is left as it is, whatever it holds: a later run changes nothing, and neither does
// one beside it. The only right that is needed is to create Secrets in one namespace; nothing is read back.
package keys

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"

	"github.com/nats-io/nkeys"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The names of the Secrets, and what is in them.
const (
	// FingerprintSecret holds the key file of the watcher under FingerprintKey.
	FingerprintSecret = "keyturn-fingerprint-key"
	FingerprintKey    = "keys"
	// NATSSecretPrefix and the name of a program are the Secret of its NATS user: the seed under <program>.nk, and under
	// PublicKey what a server knows the user by.
	NATSSecretPrefix = "keyturn-nats-"
	PublicKey        = "public"
)

// fingerprintBytes is the size of the fingerprint key: the output of SHA-256.
const fingerprintBytes = 32

// SecretCreator is a namespace's Secrets, as client-go has them.
type SecretCreator interface {
	Create(ctx context.Context, secret *corev1.Secret, opts metav1.CreateOptions) (*corev1.Secret, error)
}

// Options say what is made, and where.
type Options struct {
	// Secrets is where the keys are put. Required.
	Secrets SecretCreator
	// NATSUsers are the programs that get a NATS user. None where the users of a NATS come from elsewhere.
	NATSUsers []string
	// Random is where the keys come from. Required; anything but crypto/rand.Reader is for tests.
	Random io.Reader
	// Logger is told which keys are made and which are there already. Required.
	Logger *slog.Logger
}

// Make makes the keys that are not there yet. An error names the Secret that could not be made; those before it are there then, and
// calling it again goes on.
func Make(ctx context.Context, opts Options) error {
	fingerprint := make([]byte, fingerprintBytes)
	if _, err := io.ReadFull(opts.Random, fingerprint); err != nil {
		return fmt.Errorf("making a fingerprint key: %w", err)
	}
	file := base64.StdEncoding.EncodeToString(fingerprint) + "\n"
	if err := opts.create(ctx, FingerprintSecret, map[string]string{FingerprintKey: file}); err != nil {
		return err
	}
	for _, program := range opts.NATSUsers {
		user, err := newUser(opts.Random, program)
		if err != nil {
			return fmt.Errorf("making a nats user for the %s: %w", program, err)
		}
		if err := opts.create(ctx, NATSSecretPrefix+program, user); err != nil {
			return err
		}
	}
	return nil
}

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
	return map[string]string{program + ".nk": string(seed) + "\n", PublicKey: public}, nil
}

func (o Options) create(ctx context.Context, name string, data map[string]string) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/part-of": "keyturn"}},
		StringData: data,
	}
	_, err := o.Secrets.Create(ctx, secret, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		o.Logger.InfoContext(ctx, "a key is there already, and stays as it is", "secret", name)
		return nil
	case err != nil:
		return fmt.Errorf("creating secret %s: %w", name, err)
	}
	o.Logger.InfoContext(ctx, "a key was made", "secret", name)
	return nil
}
