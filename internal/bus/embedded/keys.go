package embedded

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nkeys"
)

// The names of the Secrets and their data keys.
const (
	// fingerprintSecret has the watcher's key file under fingerprintKey.
	fingerprintSecret = "keyturn-fingerprint-key"
	fingerprintKey    = "keys"
	// auditProgram is the watcher that only receives the audit of secret stores. auditSecret has its key file, also under fingerprintKey.
	auditProgram = "audit"
	auditSecret  = "keyturn-audit-fingerprint-key"
	// natsSecretPrefix, followed by the name of a NATS user, is the name of the user's Secret. It has the seed under <name>.nk, and
	// the public key, which the server needs, under publicKey.
	natsSecretPrefix = "keyturn-nats-"
	publicKey        = "public"
)

// fingerprintBytes is the size of the fingerprint key: the output of SHA-256.
const fingerprintBytes = 32

// KeyOptions configure MakeKeys.
type KeyOptions struct {
	Secrets secretCreator // creates the Secrets; required
	// NATSUsers are the names of the NATS users: of the programs, and of readers of the streams. Empty if they are managed elsewhere.
	NATSUsers []string
	// Audit also makes the keys of a watcher that only receives the audit of secret stores: a fingerprint key, and a NATS user if NATSUsers
	// has any. It has its own keys, because an attacker who takes over a watcher that listens on the network must not learn those of the others.
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

// MakeKeys creates the keys that do not exist yet. An error names the Secret that could not be created. A repeated call continues there.
func MakeKeys(ctx context.Context, opts KeyOptions) error {
	fingerprints, users := []string{fingerprintSecret}, opts.NATSUsers
	if opts.Audit {
		fingerprints = append(fingerprints, auditSecret)
		if len(users) > 0 {
			users = append(slices.Clone(users), auditProgram)
		}
	}
	for _, secret := range fingerprints {
		fingerprint := make([]byte, fingerprintBytes)
		if _, err := io.ReadFull(opts.Random, fingerprint); err != nil {
			return fmt.Errorf("generating the fingerprint key: %w", err)
		}
		file := base64.StdEncoding.EncodeToString(fingerprint) + "\n"
		if err := opts.ensure(ctx, secret, map[string]string{fingerprintKey: file}); err != nil {
			return err
		}
	}
	for _, program := range users {
		user, err := newUser(opts.Random, program)
		if err != nil {
			return fmt.Errorf("generating the nats user %s: %w", program, err)
		}
		if err := opts.ensure(ctx, natsSecretPrefix+program, user); err != nil {
			return err
		}
	}
	if opts.RoutesNamespace != "" {
		certificate, err := newRoutesCertificate(opts.Random, opts.Now(), opts.RoutesNamespace)
		if err != nil {
			return fmt.Errorf("generating the certificate of the nats routes: %w", err)
		}
		if err := opts.ensure(ctx, routesSecret, certificate); err != nil {
			return err
		}
	}
	if opts.TLSNamespace == "" {
		return nil
	}
	return opts.makeNATSTLS(ctx)
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
