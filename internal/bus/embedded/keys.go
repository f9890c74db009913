package embedded

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/nats-io/nkeys"
)

// The names of the Secrets and their data keys.
const (
	// fingerprintSecret contains the watcher's key file under fingerprintKey.
	fingerprintSecret = "keyturn-fingerprint-key"
	fingerprintKey    = "keys"
	// auditProgram is the watcher that only receives the audit of secret stores. auditSecret contains its key file, also under fingerprintKey.
	auditProgram = "audit"
	auditSecret  = "keyturn-audit-fingerprint-key"
	// natsSecretPrefix, followed by the name of a NATS user, is the name of the user's Secret. It contains the seed under <name>.nk, and the public
	// key, which the server needs, under publicKey.
	natsSecretPrefix = "keyturn-nats-"
	publicKey        = "public"
)

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
		if err := opts.makeKey(ctx, secret, fingerprintKey); err != nil {
			return err
		}
	}
	if opts.Storage {
		if err := opts.makeKey(ctx, storageSecret, storageKey); err != nil {
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
		if err := opts.makeRoutes(ctx); err != nil {
			return err
		}
	}
	if opts.TLSNamespace == "" {
		return nil
	}
	return opts.makeNATSTLS(ctx)
}

// makeRoutes creates the certificate of the routes between servers.
func (o KeyOptions) makeRoutes(ctx context.Context) error {
	certificate, err := newRoutesCertificate(o.Random, o.Now(), o.RoutesNamespace)
	if err != nil {
		return fmt.Errorf("generating the certificate of the nats routes: %w", err)
	}
	return o.ensure(ctx, routesSecret, certificate)
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
