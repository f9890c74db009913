package plugin

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
)

// readerSecret is the Secret that a single program creates for users.
const readerSecret = "keyturn-nats-reader"

// natsName is a name in every certificate of an embedded NATS, whatever the namespace.
const natsName = "localhost"

// openReader connects to the streams to read, until the next command or Close.
func (p *Plugin) openReader(ctx context.Context) (*bus.Reader, error) {
	if p.stream == "" {
		b, err := p.openBus(ctx)
		if err != nil {
			return nil, err
		}
		return &b.Reader, nil
	}
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	return bus.OpenFleet(ctx, p.connection, p.stream)
}

// openBus connects to the streams of the cluster, until the next command or Close.
func (p *Plugin) openBus(ctx context.Context) (*bus.Bus, error) {
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	return bus.Open(ctx, p.connection, p.cluster, nil)
}

// connect connects to NATS: at the given address, or through a tunnel to a pod of the actuator.
func (p *Plugin) connect(ctx context.Context) error {
	p.disconnect() // from a command that has ended
	options := p.nats
	var further []nats.Option
	var err error
	if options.URL == "" {
		if options.URL, further, err = p.forward(ctx); err != nil {
			return err
		}
	}
	if err := events.ValidateCluster(p.cluster); err != nil {
		return fmt.Errorf("--cluster: %w", err)
	}
	options.Cluster, options.Role, options.Name = p.cluster, "actuator", "keyturn-cli"
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	p.connection, err = bus.Connect(ctx, options, further...)
	return err
}

// forward opens a tunnel to the embedded NATS, and returns its address there, and the options of a connection through the tunnel.
func (p *Plugin) forward(ctx context.Context) (string, []nats.Option, error) {
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	if !p.installed.embedsNATS() {
		return "", nil, fmt.Errorf("the installation in namespace %s uses %s, not an embedded one: give an address of it that can be "+
			"reached from here with --nats-url, and a user like READER with --nats-creds", p.installed.namespace, p.installed.externalNATS())
	}
	port, err := p.installed.natsPort()
	if err != nil {
		return "", nil, err
	}
	pod, err := p.installed.pod(ctx)
	if err != nil {
		return "", nil, err
	}
	options, err := p.authenticate(ctx)
	if err != nil {
		return "", nil, err
	}
	if p.tunnel, err = openTunnel(ctx, &p.access, p.installed.namespace, pod, port); err != nil {
		return "", nil, err
	}
	options = append(options, nats.SetCustomDialer(p.tunnel), nats.SkipHostLookup(), nats.IgnoreDiscoveredServers())
	// The address only names the server: the tunnel leads to the pod.
	return fmt.Sprintf("nats://%s:%d", natsName, port), options, nil
}

func (p *Plugin) disconnect() {
	if p.connection != nil {
		p.connection.Close()
	}
	if p.tunnel != nil {
		p.tunnel.close()
	}
	p.connection, p.tunnel = nil, nil
}

// authenticate returns the options of a connection through a tunnel. It reports once if the certificate of NATS is not verified.
func (p *Plugin) authenticate(ctx context.Context) ([]nats.Option, error) {
	options, err := p.installed.credentials(ctx, p.nats)
	if err == nil && p.installed.unverified && !p.warned {
		p.warned = true
		fmt.Fprintln(p.terminal.errOut, "The certificate of NATS is not verified, because you may not read its CA: the API server and the node are "+
			"trusted to lead to it. With --nats-ca it is.")
	}
	return options, err
}

// natsPort returns the port of the installation's NATS. In a single program it is on loopback, and so not a port of the container.
func (i *installation) natsPort() (int, error) {
	if i.single {
		listen := cmp.Or(i.settings["KEYTURN_NATS_LISTEN"], "127.0.0.1:4222") // the default of keyturn run
		_, port, err := net.SplitHostPort(listen)
		if err != nil {
			return 0, fmt.Errorf("the NATS in namespace %s listens on %q, want an address with a port", i.namespace, listen)
		}
		return strconv.Atoi(port)
	}
	container := cmp.Or(i.natsContainer(), i.container)
	at := slices.IndexFunc(container.Ports, func(port corev1.ContainerPort) bool { return port.Name == "nats" })
	if at < 0 {
		return 0, fmt.Errorf("the container %s in namespace %s has no port named nats", container.Name, i.namespace)
	}
	return int(container.Ports[at].ContainerPort), nil
}

// credentials returns the options by which the reader authenticates to the embedded NATS and verifies its certificate. Credentials given by the user
// take precedence.
func (i *installation) credentials(ctx context.Context, given bus.ConnectOptions) ([]nats.Option, error) {
	var options []nats.Option
	if given.CredsFile == "" {
		seed, err := i.readerSeed(ctx)
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
	if given.CAFile != "" || i.single { // On loopback, to which the tunnel leads, there is no certificate.
		return options, nil
	}
	trust, err := i.trust(ctx)
	if err != nil {
		return nil, err
	}
	return append(options, nats.Secure(trust)), nil
}

// readerSeed returns the key of the reader. A single program without permission for a Secret keeps it beside its streams.
func (i *installation) readerSeed(ctx context.Context) ([]byte, error) {
	if !i.single {
		seed, _, err := i.secretFile(ctx, "KEYTURN_NATS_CREDS")
		return seed, err
	}
	secret, err := i.client.CoreV1().Secrets(i.namespace).Get(ctx, readerSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no secret %s in namespace %s: the program may make none, so give its file reader.nk with --nats-creds",
			readerSecret, i.namespace)
	}
	if err != nil {
		return nil, right{"get", "secrets", readerSecret, i.namespace}.explain(err)
	}
	return secret.Data["reader.nk"], nil
}

func (i *installation) trust(ctx context.Context) (*tls.Config, error) {
	ca, forbidden, err := i.secretFile(ctx, "KEYTURN_NATS_CA")
	if forbidden {
		// The Secret also has the key of the server, which not everyone should read. Without the Secret, the certificate is not verified: the API
		// server ensures that the tunnel leads to the pod.
		i.unverified = true
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

// login returns the option for a seed, or for a user's JWT with a seed. Errors do not quote the content.
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

// secretFile returns the content of a file that a variable of the actuator names, and that its pods have from a Secret. Forbidden says that the user
// may not read the Secret.
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
		return nil, apierrors.IsForbidden(err), right{"get", "secrets", name, i.namespace}.explain(err)
	}
	return secret.Data[key], false, nil
}
