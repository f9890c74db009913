package program

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/internal/kube"
)

const (
	// keysTimeout bounds each attempt to take the keys from their Secrets.
	keysTimeout = 30 * time.Second
	// keysRefusals is the number of refusals, within about 15 seconds, after which permission counts as missing.
	keysRefusals = 5
)

// Single runs the watcher, the actuator and their NATS server in one process. The server can be reached from outside only on loopback and with the
// key of the reader, by users' commands. Its fields are its options.
//
// The keys are those of an installation with two pods, in Secrets with the same names, and so are the Lease and the streams, so that one form can
// replace the other.
type Single struct {
	// Process contains the options of the process. Of the process options of the two programs, only Kube is used.
	Process  Options
	Watcher  *Watcher
	Actuator *Actuator

	// isTemporary says that the streams are in a temporary directory, where they are not encrypted.
	isTemporary bool
}

// NewSingle returns a Single with the defaults.
func NewSingle(version string) *Single {
	s := &Single{Process: defaultOptions("run", version), Watcher: NewWatcher(version), Actuator: NewActuator(version)}
	s.Actuator.Embedded.Listen = "127.0.0.1:4222"
	return s
}

// AddFlags adds the flags of both programs, each once.
func (s *Single) AddFlags(flags *pflag.FlagSet) {
	actuate, server := &s.Actuator.Actuate, &s.Actuator.Embedded
	s.Process.addServerFlags(flags)
	s.Process.addRunFlags(flags)
	flags.StringSliceVar(&actuate.Namespaces, "namespaces", nil, "`namespaces` to watch and to roll in, separated by commas; empty means all")
	actuate.AddFlags(flags)
	s.Actuator.Notify.AddFlags(flags)
	flags.StringVar(&server.Listen, "nats-listen", server.Listen,
		"loopback `address` on which the NATS in this process listens for users' commands; empty means none")
	flags.StringVar(&server.StoreDir, "nats-store-dir", server.StoreDir,
		"`directory` for the streams; empty uses a temporary one, below $TMPDIR or /tmp, or else /dev/shm")
	sources := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.Watcher.Sources.AddFlags(sources)
	flags.AddFlagSet(sources) // without those that the actuator has, too, which share copies
	key := flags.Lookup("fingerprint-key-file")
	key.Usage = "`file` with the fingerprint keys; empty takes them from the Secret keyturn-fingerprint-key, and creates it if it is missing"
}

// share copies the options that both programs have.
func (s *Single) share() {
	process, actuate, sources := &s.Process, &s.Actuator.Actuate, &s.Watcher.Sources
	actuate.Cluster, sources.Cluster = process.Cluster, process.Cluster
	sources.Namespaces, sources.IgnoreNamespaces = actuate.Namespaces, actuate.IgnoreNamespaces
	sources.Reloader, s.Actuator.Call.URL = actuate.Reloader, actuate.Reloader.WebhookURL
	s.Watcher.Process.Kube.Kubeconfig, s.Actuator.Process.Kube.Kubeconfig = process.Kube.Kubeconfig, process.Kube.Kubeconfig
}

// Run runs both programs until ctx ends, one of them ends, or a step fails. An error about the options has a line for each problem. Log lines go to
// log.
func (s *Single) Run(ctx context.Context, log io.Writer, build Build) error {
	s.share()
	keyFile := &s.Watcher.Sources.KeyFile
	hasKey := *keyFile != ""
	if !hasKey {
		*keyFile = keyName
	}
	err := eachLineOnce(s.Process.validate(), s.Watcher.Sources.Validate(), s.Actuator.Actuate.Validate(), s.Actuator.validateCall(),
		s.Actuator.Embedded.ValidateLoopback())
	if err != nil {
		return err
	}
	s.isTemporary = s.Actuator.Embedded.StoreDir == ""
	dir, lock, err := lockFirst("--nats-store-dir", stateDirs(s.Actuator.Embedded.StoreDir, "keyturn"))
	if err != nil {
		return err
	}
	logger := NewLogger(log, s.Process.Log)
	logger.InfoContext(ctx, "state opened", "dir", dir, "temporary", s.isTemporary)
	s.Actuator.Embedded.StoreDir = dir
	if !hasKey {
		*keyFile = filepath.Join(dir, keyName)
	}
	err = s.takeKeys(ctx, logger, !hasKey)
	if err == nil {
		err = run(ctx, program{Name: "run", Build: build, Options: s.Process, Log: log, Parts: s.parts()})
	}
	return errors.Join(err, lock.Close())
}

// eachLineOnce joins errors about options, some of which both programs have.
func eachLineOnce(errs ...error) error {
	err := errors.Join(errs...)
	if err == nil {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}

func (s *Single) parts() []part {
	parts := together(s.Watcher, s.Actuator, func(context.Context, *runtime) {})
	// A volume may have come from another cluster, with that cluster's claim.
	parts[0].Identify, parts[1].Identify = checkName, claimName
	return parts
}

// takeKeys takes the keys from their Secrets, which it creates at the first start. Without permission for that, and if key files exist already, the
// keys are beside the streams. Fingerprint says that the fingerprint key is needed, because no file is configured.
func (s *Single) takeKeys(ctx context.Context, logger *slog.Logger, fingerprint bool) error {
	dir := s.Actuator.Embedded.StoreDir
	if _, err := os.Stat(filepath.Join(dir, keyName)); err == nil {
		return s.takeFiles(ctx, logger, fingerprint)
	}
	client, err := s.Actuator.Process.Kube.Client()
	if err != nil {
		return err
	}
	secrets := client.CoreV1().Secrets(cmp.Or(os.Getenv("POD_NAMESPACE"), s.Actuator.Actuate.LeaseNamespace))
	options := embedded.KeyOptions{Secrets: secrets, Updates: secrets, Random: rand.Reader, Logger: logger}
	keys, err := askForKeys(ctx, logger, func(ctx context.Context) (embedded.Keys, error) {
		keys, err := embedded.OwnKeys(ctx, options)
		if err == nil && !s.isTemporary {
			s.Actuator.Embedded.StorageKey, err = storageKeyOf(ctx, logger, options)
		}
		return keys, err
	})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		logger.WarnContext(ctx, "keys are kept beside the streams, because the Secrets for them cannot be created", "dir", dir, "err", err)
		return s.takeFiles(ctx, logger, fingerprint)
	case err != nil:
		return err
	}
	s.Actuator.Embedded.Reader = keys.Reader
	if !fingerprint {
		return nil
	}
	s.Watcher.Sources.Keys = keys.Fingerprint
	return s.forget(ctx, logger, keys.Made)
}

// storageKeyOf returns the key of the storage, or "" without permission for its Secret, so that the other keys can be used nevertheless.
func storageKeyOf(ctx context.Context, logger *slog.Logger, options embedded.KeyOptions) (string, error) {
	key, err := embedded.OwnStorageKey(ctx, options)
	if apierrors.IsForbidden(err) {
		logger.WarnContext(ctx, "the streams are not encrypted: the Secret with the key of their storage is forbidden", "err", err)
		return "", nil
	}
	return key, err
}

// askForKeys returns the keys that own takes from Secrets. It retries until ctx ends, they cannot exist, or permission counts as missing: an API
// server that has just started refuses all requests until it knows the roles, and new keys would then replace those of the installation.
func askForKeys(ctx context.Context, logger *slog.Logger, own func(ctx context.Context) (embedded.Keys, error)) (embedded.Keys, error) {
	delays := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 6, Cap: 30 * time.Second}
	made, refused := false, 0
	for {
		bounded, cancel := context.WithTimeout(ctx, keysTimeout)
		keys, err := own(bounded)
		cancel()
		made = made || keys.Made
		keys.Made = made
		if apierrors.IsForbidden(err) {
			refused++
		}
		switch {
		case err == nil, apierrors.IsNotFound(err), refused == keysRefusals:
			return keys, err
		case ctx.Err() != nil:
			return keys, ctx.Err()
		}
		delay := delays.Step()
		logger.WarnContext(ctx, "keys cannot be read", "err", err, "retry_in", delay)
		if !kube.Sleep(ctx, delay) {
			return keys, ctx.Err()
		}
	}
}

// takeFiles takes the keys from files beside the streams, which it creates at the first start.
func (s *Single) takeFiles(ctx context.Context, logger *slog.Logger, fingerprint bool) error {
	dir := s.Actuator.Embedded.StoreDir
	var err error
	if s.Actuator.Embedded.Reader, err = embedded.ReaderFile(filepath.Join(dir, "reader.nk")); err != nil {
		return fmt.Errorf("--nats-store-dir: %w", err)
	}
	if !fingerprint {
		return nil
	}
	if _, err := os.Stat(s.Watcher.Sources.KeyFile); err == nil {
		return nil
	}
	logger.InfoContext(ctx, "fingerprint key made", "file", s.Watcher.Sources.KeyFile)
	if err := errors.Join(s.forget(ctx, logger, true), makeKey(s.Watcher.Sources.KeyFile, rand.Reader)); err != nil {
		return fmt.Errorf("--nats-store-dir: %w", err)
	}
	return nil
}

// forget removes the streams if the fingerprint key is new: fingerprints under different keys cannot be compared, so every source that was written
// meanwhile would count as changed.
func (s *Single) forget(ctx context.Context, logger *slog.Logger, isNew bool) error {
	if !isNew {
		return nil
	}
	removed, err := embedded.RemoveStreams(s.Actuator.Embedded.StoreDir)
	if removed {
		logger.WarnContext(ctx, "streams of a lost fingerprint key removed, with the history", "dir", s.Actuator.Embedded.StoreDir)
	}
	return err
}

// together returns both programs as parts of one process. The actuator's Connect calls begin and starts the server, to which the watcher connects.
func together(watcher *Watcher, actuator *Actuator, begin func(ctx context.Context, r *runtime)) []part {
	return []part{
		{Role: "actuator", Prepare: actuator.prepare, Connect: func(ctx context.Context, r *runtime) (*nats.Conn, error) {
			begin(ctx, r)
			return actuator.connect(ctx, r)
		}},
		{Role: "watcher", Prepare: watcher.prepare, Connect: func(ctx context.Context, r *runtime) (*nats.Conn, error) {
			return r.Connect(ctx, actuator.server.ClientOption())
		}},
	}
}
