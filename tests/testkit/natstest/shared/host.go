package shared

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/keyturn/keyturn/tests/testkit"
)

const (
	// room is how much the streams of all accounts may reserve, in bytes: as good as no limit. The server only counts. Without a limit of its own, it
	// would refuse streams on a small disk.
	room = 1 << 50
	// syncInterval is longer than any test: nothing has to outlive a loss of power.
	syncInterval = time.Hour
)

// errNoMain is the error of a test whose package would not stop the server.
var errNoMain = errors.New("want natstest.Main as the TestMain of the package: it stops the server")

// one is the server of this process. It is a variable because only TestMain knows when the last test has ended, and a test can take over nothing from
// the one before.
var one host

// host is a server with the accounts of tests. It is started for the first account.
type host struct {
	mu     sync.Mutex
	opened bool
	dir    string
	server *server.Server
	// made is the number of accounts so far, and accounts has them by the name of their user.
	made     int
	accounts sync.Map
}

// open lets tests have accounts. The caller must call stop.
func (h *host) open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened = true
}

func (h *host) isOpen() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.opened
}

// account makes an account, and returns the address of the server with the name and the password of its user.
func (h *host) account() (address string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.opened {
		return "", errNoMain
	}
	if h.server == nil {
		if err := h.start(); err != nil {
			return "", err
		}
	}
	h.made++
	name := fmt.Sprintf("test-%d", h.made)
	account, err := h.server.RegisterAccount(name)
	if err != nil {
		return "", fmt.Errorf("registering account %s: %w", name, err)
	}
	if err := account.EnableJetStream(nil, nil); err != nil {
		return "", fmt.Errorf("enabling JetStream for account %s: %w", name, err)
	}
	h.accounts.Store(name, account)
	u := url.URL{Scheme: "nats", User: url.UserPassword(name, name), Host: h.server.Addr().String()}
	return u.String(), nil
}

// Check implements server.Authentication: a user is one of the account of its name. Accounts that are added to the options of a server would need a
// reload for each test.
func (h *host) Check(client server.ClientAuthentication) bool {
	account, found := h.accounts.Load(client.GetOpts().Username)
	if found {
		client.RegisterUser(&server.User{Account: account.(*server.Account)})
	}
	return found
}

func (h *host) start() error {
	dir, err := os.MkdirTemp("", "keyturn-nats-")
	if err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, AuthTimeout: testkit.Patience.Seconds(),
		CustomClientAuthentication: h, JetStream: true, StoreDir: dir, JetStreamMaxStore: room, SyncInterval: syncInterval,
	})
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	s.Start()
	h.dir, h.server = dir, s
	if !s.ReadyForConnections(testkit.Patience) {
		return errors.Join(errors.New("the NATS server is not ready"), h.end())
	}
	return nil
}

// stop stops the server, if there is one, and lets no test start another one.
func (h *host) stop() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened = false
	return h.end()
}

// end stops the server and removes its files, again if it writes one meanwhile: see [testkit.StoreDir].
func (h *host) end() error {
	if h.server == nil {
		return nil
	}
	h.server.Shutdown()
	h.server.WaitForShutdown()
	h.server = nil
	err := os.RemoveAll(h.dir)
	for deadline := time.Now().Add(testkit.Patience); err != nil && time.Now().Before(deadline); err = os.RemoveAll(h.dir) {
		<-time.After(10 * time.Millisecond)
	}
	return err
}
