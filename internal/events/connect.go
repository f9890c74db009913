package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"
)

// ConnectOptions say how NATS is reached.
type ConnectOptions struct {
	// URL is one or more server URLs, separated by commas. Empty means nats://127.0.0.1:4222.
	URL string
	// CredsFile holds a user's JWT with its seed, as `nsc` writes it, or a bare NKey seed. Which of them is told by its
	// content. It is read again with each connection, so it may be rotated. Empty means no credentials.
	CredsFile string
	// CAFile holds the PEM certificates that the server's certificate is verified with, and makes TLS required. Empty means
	// those of the system. It is read again with each connection.
	CAFile string
	// CertFile and KeyFile hold the certificate that is shown to a server which asks for one, and its private key, in PEM.
	// They are read again with each connection. Empty means none; neither is without the other.
	CertFile, KeyFile string
	// Name is the name of the connection, for the server's monitoring.
	Name string
	// Cluster is the configured name of the cluster.
	Cluster string
	// Role is which program it is, "watcher" or "actuator". The inbox is _INBOX_<role>.<cluster>, so that it can be private
	// to one user. Empty is for what is neither, and gives _INBOX.<cluster>.
	Role string
	// Logger is told of what happens to the connection. Nil means that nothing is logged.
	Logger *slog.Logger
}

// AddFlags binds the options that are flags.
func (o *ConnectOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.URL, "nats-url", nats.DefaultURL, "`URLs` of the NATS servers, separated by commas")
	flags.StringVar(&o.CredsFile, "nats-creds", "", "`file` with the NATS user's JWT credentials or bare NKey seed")
	flags.StringVar(&o.CAFile, "nats-ca", "", "`file` with the certificates that NATS servers are verified with (PEM)")
	flags.StringVar(&o.CertFile, "nats-cert", "", "`file` with the certificate for NATS servers that ask for one (PEM); needs --nats-key")
	flags.StringVar(&o.KeyFile, "nats-key", "", "`file` with the private key of --nats-cert (PEM)")
}

// unreachableEvery is how often Connect says that it still waits.
const unreachableEvery = 5 * time.Second

// Connect connects to NATS. It returns when the connection stands, or with an error when ctx is done or an option is
// wrong: a server that is not there yet is waited for, with a log line every five seconds. From then on the connection is
// repaired for ever. The further options come last, so they win: nats.InProcessServer for an embedded server.
func Connect(ctx context.Context, opts ConnectOptions, further ...nats.Option) (*nats.Conn, error) {
	logger := orDiscard(opts.Logger)
	if err := ValidateCluster(opts.Cluster); err != nil {
		return nil, err
	}
	if opts.URL == "" {
		opts.URL = nats.DefaultURL
	}
	shown, err := redact(opts.URL)
	if err != nil {
		return nil, err
	}
	var last atomic.Pointer[error]
	var user nkeyUser
	options, err := opts.options(logger, shown, &last, &user)
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(opts.URL, append(options, further...)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to nats at %s: %w", shown, err)
	}
	user.conn.Store(nc)
	// The channel is asked for before the state, so that no change is missed between the two.
	changed := nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer nc.RemoveStatusListener(changed)
	tick := time.NewTicker(unreachableEvery)
	defer tick.Stop()
	for !nc.IsConnected() {
		why := nc.LastError()
		if err := last.Load(); err != nil {
			why = *err
		}
		if nc.IsClosed() {
			return nil, fmt.Errorf("connecting to nats at %s: %w", shown, errors.Join(nats.ErrConnectionClosed, why))
		}
		logger.WarnContext(ctx, "nats is unreachable", "url", shown, "err", why)
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			nc.Close()
			return nil, fmt.Errorf("connecting to nats at %s: %w", shown, errors.Join(ctx.Err(), why))
		}
	}
	logger.InfoContext(ctx, "nats is connected", "url", shown, "server", nc.ConnectedServerName())
	return nc, nil
}

// Connected is nil while the connection stands; else it says that it does not. It is a readiness check. A nil connection
// is one that was not made yet.
func Connected(nc *nats.Conn) error {
	if nc == nil {
		return errors.New("nats was not reached yet")
	}
	if !nc.IsConnected() {
		return errors.New("nats is not connected: " + nc.Status().String())
	}
	return nil
}

// Drain lets what is under way on the connection finish, and closes it. It returns when it is closed, or closes it at once
// when ctx is done.
func Drain(ctx context.Context, nc *nats.Conn) error {
	closed := nc.StatusChanged(nats.CLOSED)
	defer nc.RemoveStatusListener(closed)
	if err := nc.Drain(); errors.Is(err, nats.ErrConnectionClosed) || nc.IsClosed() {
		return nil
	} else if err != nil {
		nc.Close()
		return fmt.Errorf("draining the nats connection: %w", err)
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		nc.Close()
		return fmt.Errorf("draining the nats connection: %w", ctx.Err())
	}
}

func (o ConnectOptions) options(logger *slog.Logger, shown string, last *atomic.Pointer[error], user *nkeyUser) ([]nats.Option, error) {
	options := []nats.Option{
		nats.Name(o.Name),
		nats.CustomInboxPrefix(o.inbox()),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		// Credentials may be rotated, and users be made later than the programs: a refusal is not the end.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(time.Second),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { last.Store(&err) }),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() && err != nil {
				logger.WarnContext(context.Background(), "nats is disconnected", "url", shown, "err", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			logger.InfoContext(context.Background(), "nats is connected again", "url", shown, "server", nc.ConnectedServerName())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			var subject string
			if sub != nil {
				subject = sub.Subject
			}
			logger.WarnContext(context.Background(), "nats reports an error", "subject", subject, "err", err)
		}),
	}
	if o.CAFile != "" {
		options = append(options, nats.RootCAs(o.CAFile))
	}
	switch {
	case (o.CertFile == "") != (o.KeyFile == ""):
		return nil, errors.New("nats-cert, nats-key: one is empty, want both or neither")
	case o.CertFile != "":
		options = append(options, nats.ClientCert(o.CertFile, o.KeyFile))
	}
	if o.CredsFile != "" {
		option, err := credentials(o.CredsFile, user)
		if err != nil {
			return nil, err
		}
		options = append(options, option)
	}
	return options, nil
}

// inbox is what the subjects of answers begin with. The cluster is a token of its own, so that a server with one cluster
// can allow _INBOX_watcher.*.> without knowing its name.
func (o ConnectOptions) inbox() string {
	if o.Role == "" {
		return "_INBOX." + o.Cluster
	}
	return "_INBOX_" + o.Role + "." + o.Cluster
}

// redact gives the URLs without what stands before the host: a token or a user with a password.
func redact(urls string) (string, error) {
	var shown []string
	for text := range strings.SplitSeq(urls, ",") {
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			// The parser's own error quotes the URL, and with it the credentials.
			return "", errors.New("nats-url: want URLs like nats://host:4222, separated by commas")
		}
		shown = append(shown, u.Scheme+"://"+u.Host)
	}
	return strings.Join(shown, ","), nil
}

func orDiscard(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return logger
}
