package plugin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/inspect"
)

// natsName is a name that every certificate of an embedded NATS has, whatever the namespace.
const natsName = "localhost"

// streams returns how to reach the streams: at the address that was given, or through a tunnel to a pod of the actuator.
func (p *Plugin) streams(ctx context.Context) (inspect.Streams, error) {
	ctx, cancel := context.WithTimeout(ctx, tunnelTimeout)
	defer cancel()
	streams := inspect.Streams{Connect: p.nats, Cluster: p.cluster}
	if p.nats.URL != "" {
		return streams, nil
	}
	if !p.installed.embedsNATS() {
		return streams, fmt.Errorf("the installation in namespace %s uses %s, not an embedded one: give an address of it that can be "+
			"reached from here with --nats-url, and a user like READER with --nats-creds", p.installed.namespace, p.installed.externalNATS())
	}
	port, err := p.installed.natsPort()
	if err != nil {
		return streams, err
	}
	pod, err := p.installed.pod(ctx)
	if err != nil {
		return streams, err
	}
	options, err := p.installed.credentials(ctx, p.nats)
	if err != nil {
		return streams, err
	}
	if p.tunnel != nil {
		p.tunnel.close() // from a command that has ended
	}
	if p.tunnel, err = openTunnel(ctx, &p.access, p.installed.namespace, pod, port); err != nil {
		return streams, err
	}
	// The address only names the server: the tunnel leads to the pod.
	streams.Connect.URL = fmt.Sprintf("nats://%s:%d", natsName, port)
	streams.Further = append(options, nats.SetCustomDialer(p.tunnel), nats.SkipHostLookup(), nats.IgnoreDiscoveredServers())
	return streams, nil
}

func (i *installation) natsPort() (int, error) {
	listen := i.settings["KEYTURN_NATS_LISTEN"]
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return 0, fmt.Errorf("the NATS of the actuator in namespace %s listens on %q, want an address with a port", i.namespace, listen)
	}
	return strconv.Atoi(port)
}

// credentials returns the options with which the reader authenticates to the embedded NATS and verifies its certificate. They do not
// replace what the user has given.
func (i *installation) credentials(ctx context.Context, given bus.ConnectOptions) ([]nats.Option, error) {
	var options []nats.Option
	if given.CredsFile == "" {
		seed, _, err := i.secretFile(ctx, "KEYTURN_NATS_CREDS")
		if err != nil {
			return nil, err
		}
		defer clear(seed)
		user, err := login(seed)
		if err != nil {
			return nil, err
		}
		options = append(options, user)
	}
	if given.CAFile != "" {
		return options, nil
	}
	trust, err := i.trust(ctx)
	if err != nil {
		return nil, err
	}
	return append(options, nats.Secure(trust)), nil
}

func (i *installation) trust(ctx context.Context) (*tls.Config, error) {
	ca, forbidden, err := i.secretFile(ctx, "KEYTURN_NATS_CA")
	if forbidden {
		// The Secret also has the key of the server, which not everyone should read. Without it, the certificate is not verified: the API
		// server ensures that the tunnel leads to the pod.
		return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}, nil //nolint:gosec // see above
	}
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s of the actuator has no certificate", i.environment["KEYTURN_NATS_CA"])
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: natsName}, nil
}

// login returns the option for a seed, or for a user's JWT with a seed. No error quotes the content.
func login(content []byte) (nats.Option, error) {
	if strings.Contains(string(content), "BEGIN NATS USER JWT") {
		return nats.UserCredentialBytes(append([]byte{}, content...)), nil
	}
	if pair, err := nkeys.ParseDecoratedUserNKey(content); err == nil {
		if public, err := pair.PublicKey(); err == nil {
			return nats.Nkey(public, pair.Sign), nil
		}
	}
	return nil, errors.New("the credentials of the reader are no NKey of a user")
}

// secretFile returns the content of a file that a variable of the actuator names, and that its pods have from a Secret. Forbidden says that the error
// is a missing permission to read the Secret.
func (i *installation) secretFile(ctx context.Context, variable string) (content []byte, forbidden bool, err error) {
	path := i.environment[variable]
	volume, key := i.mounted(path)
	if volume == nil || volume.Secret == nil {
		return nil, false, fmt.Errorf("%s of the actuator is %q, want a file of a Secret", variable, path)
	}
	for _, item := range volume.Secret.Items {
		if item.Path == key {
			key = item.Key
		}
	}
	name := volume.Secret.SecretName
	secret, err := i.client.CoreV1().Secrets(i.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, apierrors.IsForbidden(err), right{"get", "secrets/" + name, i.namespace}.explain(err)
	}
	return secret.Data[key], false, nil
}
