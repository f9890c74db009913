package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/spf13/pflag"
)

// If a server vanishes without closing the connection, for example because of a power loss, the client notices after 6 seconds. The other servers of
// its cluster take about as long to replace it. TCP alone would take minutes.
const (
	pingInterval = 2 * time.Second
	maxPings     = 2
)

// ConnectOptions configure the connection to NATS.
type ConnectOptions struct {
	URL string // lists server URLs, separated by commas; empty means nats://127.0.0.1:4222
	// CredsFile contains a user's JWT and seed, or a bare NKey seed. It is read at each attempt to connect. Empty means no credentials.
	CredsFile string
	// CAFile contains the CAs of the server, in PEM, and makes TLS mandatory. It may be a folder with the CAs in ca.crt and a client certificate in
	// tls.crt and tls.key. It is read at each attempt. Empty means the CAs of the system.
	CAFile  string
	Name    string // identifies the connection in the server's monitoring
	Cluster string // the configured name of the cluster
	// Role is "watcher" or "actuator". It makes the inbox _INBOX_<role>.<cluster>, private to one user. Empty means _INBOX.<cluster>.
	Role   string
	Logger *slog.Logger // logs the events of the connection; nil discards
}

// AddFlags adds the flags of the options.
func (o *ConnectOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.URL, "nats-url", nats.DefaultURL, "`URLs` of the NATS servers, separated by commas")
	flags.StringVar(&o.CredsFile, "nats-creds", "", "`file` with the NATS user's JWT credentials or bare NKey seed")
	flags.StringVar(&o.CAFile, "nats-ca", "",
		"`file` with the CA certificates of the NATS servers (PEM), or a folder with these in ca.crt and a client certificate in tls.crt and "+
			"tls.key; empty uses the CAs of the system")
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
	if folder, err := os.Stat(o.CAFile); err == nil && folder.IsDir() {
		options = append(options, nats.RootCAs(filepath.Join(o.CAFile, "ca.crt")),
			nats.ClientCert(filepath.Join(o.CAFile, "tls.crt"), filepath.Join(o.CAFile, "tls.key")))
	} else if o.CAFile != "" {
		options = append(options, nats.RootCAs(o.CAFile))
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
			// url.Error quotes the URL, including the credentials.
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

// credentials returns the option for a credentials file or a file with a bare NKey seed. No error quotes the content.
func credentials(path string, user *nkeyUser) (nats.Option, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("nats-creds: %w", err)
	}
	defer clear(content)
	if strings.Contains(string(content), "BEGIN NATS USER JWT") {
		return nats.UserCredentials(path), nil
	}
	user.path = path
	pair, public, err := user.read()
	if err != nil {
		return nil, err
	}
	pair.Wipe()
	return nats.Nkey(public, user.sign), nil
}

// nkeyUser authenticates with a bare NKey. The client library reads the public key only once, even after a rotation of the seed.
type nkeyUser struct {
	path string
	conn atomic.Pointer[nats.Conn] // set once nats.Connect has returned
}

// read reads the seed. The caller must wipe the key pair.
func (u *nkeyUser) read() (pair nkeys.KeyPair, public string, err error) {
	content, err := os.ReadFile(u.path)
	if err != nil {
		return nil, "", fmt.Errorf("nats-creds: %w", err)
	}
	defer clear(content)
	if pair, err = nkeys.ParseDecoratedUserNKey(content); err == nil {
		public, err = pair.PublicKey()
	}
	if err != nil {
		return nil, "", fmt.Errorf("nats-creds %s: want a credentials file with a user's JWT, or a user's NKey seed", u.path)
	}
	return pair, public, nil
}

// sign signs the server's nonce. After a rotation the server rejects this attempt, and the next one uses the new public
// key. The library holds the lock of the connection, so writing its options is safe. It does not for secretsOf.
func (u *nkeyUser) sign(nonce []byte) ([]byte, error) {
	pair, public, err := u.read()
	if err != nil {
		return nil, err
	}
	defer pair.Wipe()
	if nc := u.conn.Load(); nc != nil && string(nonce) != secretText {
		nc.Opts.Nkey = public
	}
	return pair.Sign(nonce)
}
