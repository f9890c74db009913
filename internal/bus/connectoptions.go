package bus

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"
)

// If a server vanishes without closing the connection, for example because its machine lost power, the client notices after 6 seconds. The
// other servers of its cluster take about as long to carry on without it. TCP alone would take minutes.
const (
	pingInterval = 2 * time.Second
	maxPings     = 2
)

// ConnectOptions configure the connection to NATS.
type ConnectOptions struct {
	URL string // lists server URLs, separated by commas; empty means nats://127.0.0.1:4222
	// CredsFile holds a user's JWT and seed, or a bare NKey seed. It is read at each attempt to connect. Empty means no credentials.
	CredsFile string
	// CAFile holds the CAs of the server, in PEM, and makes TLS mandatory. It is read at each attempt. Empty means those of the system.
	CAFile string
	// CertFile and KeyFile hold the client certificate and its key, in PEM. They are read at each attempt. Either both or neither are set.
	CertFile, KeyFile string
	Name              string // identifies the connection in the server's monitoring
	Cluster           string // the configured name of the cluster
	Inbox             string // the prefix of reply subjects, for a user that may subscribe to no other; empty means the prefix that follows from Role
	// Role is "watcher" or "actuator". It makes the inbox _INBOX_<role>.<cluster>, private to one user. Empty means _INBOX.<cluster>.
	Role   string
	Logger *slog.Logger // logs the events of the connection; nil discards
}

// AddFlags adds the flags of the options.
func (o *ConnectOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.URL, "nats-url", nats.DefaultURL, "`URLs` of the NATS servers, separated by commas")
	flags.StringVar(&o.CredsFile, "nats-creds", "", "`file` with the NATS user's JWT credentials or bare NKey seed")
	flags.StringVar(&o.Inbox, "nats-inbox", "",
		"`prefix` of the subjects of replies, for a NATS user that may subscribe to no other; empty means _INBOX_<program>.<cluster>")
	flags.StringVar(&o.CAFile, "nats-ca", "", "`file` with the CA certificates of the NATS servers (PEM); empty uses those of the system")
	flags.StringVar(&o.CertFile, "nats-cert", "", "`file` with the client certificate for NATS (PEM); needs --nats-key")
	flags.StringVar(&o.KeyFile, "nats-key", "", "`file` with the private key of --nats-cert (PEM)")
}

// options returns the options of the connection. The handlers log with ctx, and store the last error of a connection attempt in last.
func (o ConnectOptions) options(
	ctx context.Context, logger *slog.Logger, shown string, last *atomic.Pointer[error], user *nkeyUser,
) ([]nats.Option, error) {
	options := []nats.Option{
		nats.Name(o.Name),
		nats.CustomInboxPrefix(o.inbox()),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		// Keep trying after a rejection: credentials may be rotated, and users may be created after the programs start.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(time.Second),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPings),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { last.Store(&err) }),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() && err != nil {
				logger.WarnContext(ctx, "nats disconnected", "url", shown, "err", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			logger.InfoContext(ctx, "nats reconnected", "url", shown, "server", nc.ConnectedServerName())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			var subject string
			if sub != nil {
				subject = sub.Subject
			}
			logger.WarnContext(ctx, "nats reports an error", "subject", subject, "err", err)
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

// inbox returns the prefix of reply subjects. The cluster is a separate token, so that permissions can allow _INBOX_watcher.*.>.
func (o ConnectOptions) inbox() string {
	if o.Inbox != "" {
		return o.Inbox
	}
	if o.Role == "" {
		return "_INBOX." + o.Cluster
	}
	return "_INBOX_" + o.Role + "." + o.Cluster
}

// Redact returns the URLs of NATS servers without their credentials, which are a token, or a user and a password.
func Redact(urls string) (string, error) {
	var shown []string
	for text := range strings.SplitSeq(urls, ",") {
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			// url.Error quotes the URL, and with it the credentials.
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
