package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testbed/secretstore"
)

// storeName is the name of the store in events.
const storeName = "main"

// auditToken authenticates the store's HTTP audit device, or the log shipper, to the watcher.
const auditToken = "a-token-of-the-audit-device"

// written is a version of a secret in the store.
type written struct {
	// path is relative to the mount.
	path    string
	version int
	// at is when the store created it, by its own clock.
	at time.Time
	// value is never printed.
	value string
}

// source returns the secret as a source of events.
func (w written) source() events.Source {
	return events.StorePath{Store: storeName, Namespace: events.RootNamespace, Mount: mount, Path: w.path}.Source()
}

// event returns the id of the version's event.
func (w written) event() string {
	return fmt.Sprintf("%s/%d/%d", w.source().Name, w.version, w.at.UnixNano())
}

func (w written) String() string { return fmt.Sprintf("version %d of %s/%s", w.version, mount, w.path) }

// startStore starts the store and writes a first version of each secret.
func (s *stage) startStore(ctx context.Context, out *report) error {
	port, err := process.FreePort()
	if err != nil {
		return err
	}
	c := s.chain
	c.listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	options, product := secretstore.Options{Dir: filepath.Join(s.dir, "store"), Log: out}, "Vault"
	if secretstore.OpenBao() {
		options.AuditURL, options.AuditToken, product = c.receiver(), auditToken, "OpenBao"
	}
	if c.store, err = secretstore.Start(ctx, options); err != nil {
		return err
	}
	s.onStop(c.store.Stop)
	if !secretstore.OpenBao() {
		// Its lines are shipped to the watcher.
		if err := c.store.AuditToFile(ctx); err != nil {
			return err
		}
	}
	for _, path := range storePaths {
		if err := s.put(ctx, path); err != nil {
			return err
		}
	}
	out.did("%s is running, with %s", product, plural(len(storePaths), "secret"))
	return nil
}

// chainOptions configures the programs as the component secret-stores does. The store is polled once an hour: changes arrive through its
// audit log.
func (s *stage) chainOptions() (programs.Options, error) {
	c := s.chain
	config, token, shown := filepath.Join(s.dir, "stores.yaml"), filepath.Join(s.dir, "store-token"), filepath.Join(s.dir, "audit-token")
	for path, content := range map[string]string{
		token: c.store.Token() + "\n", shown: auditToken + "\n",
		config: fmt.Sprintf("stores:\n- name: %s\n  address: %s\n  auth: {tokenFile: %s}\n  poll: {interval: 1h, mounts: [%s]}\n"+
			"audit: {tokenFile: %s}\n", storeName, c.store.Address(), token, mount, shown),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return programs.Options{}, fmt.Errorf("configuring the programs: %w", err)
		}
	}
	watcher := []string{
		"--sources", "secret,configmap,externalsecret,certificate", "--openbao-config", config,
		"--openbao-audit-listen", c.listen,
	}
	return programs.Options{WatcherArgs: watcher, ActuatorArgs: []string{"--force-sync"}}, nil
}

// receiver is the URL to which the store's audit log is posted.
func (c *chain) receiver() string { return "http://" + c.listen + "/v1/audit/" + storeName }

// feed connects the store's audit log to the watcher. OpenBao is configured to post it. Vault cannot, so the lines of its audit file are shipped.
func (s *stage) feed(ctx context.Context, out *report) error {
	if secretstore.OpenBao() {
		out.did("the store posts its audit log to the watcher")
		return nil
	}
	stop, err := s.chain.store.ShipAudit(ctx, s.chain.receiver(), auditToken)
	if err != nil {
		return err
	}
	s.stops = append(s.stops, stop)
	out.did("a log shipper posts the store's audit log to the watcher")
	return nil
}

// put writes a new version of a secret to the store.
func (s *stage) put(ctx context.Context, path string) error {
	return s.putValue(ctx, path, rand.Text())
}

func (s *stage) putValue(ctx context.Context, path, value string) error {
	kv, err := s.chain.store.Client().KVv2(mount).Put(ctx, path, map[string]any{secretKey: value})
	if err != nil {
		return fmt.Errorf("writing %s to the store: %w", path, err)
	}
	s.chain.last = written{path: path, version: kv.VersionMetadata.Version, at: kv.VersionMetadata.CreatedTime, value: value}
	return nil
}

// checkContent checks whether a Secret has the latest content, as wanted.
func (s *stage) checkContent(ctx context.Context, secret string, want bool) error {
	got, err := s.client.CoreV1().Secrets(namespace).Get(ctx, secret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading secret/%s: %w", secret, err)
	}
	if has := string(got.Data[secretKey]) == s.chain.last.value; has != want {
		return fmt.Errorf("secret/%s has the content of %s: %t, want %t", secret, s.chain.last, has, want)
	}
	return nil
}
