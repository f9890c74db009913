package embedded

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

// replicas are three servers in processes of their own, as in the pods of three actuators: with the configuration that is deployed, its
// users, the certificate of the job, and the names of the pods.
type replicas struct {
	*testing.T
	keys    folderOfKeys
	env     []string
	servers []*replica
}

// replica is one of them.
type replica struct {
	replicaOptions
	name    string
	process *process.Process
}

// folderOfKeys writes Secrets as the volumes of pods.
type folderOfKeys string

func (f folderOfKeys) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	dir := filepath.Join(string(f), secret.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for name, content := range secret.StringData {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	return secret, nil
}

// Get returns that there is none: nothing is renewed.
func (f folderOfKeys) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

func (f folderOfKeys) Update(context.Context, *corev1.Secret, metav1.UpdateOptions) (*corev1.Secret, error) {
	return nil, errors.ErrUnsupported
}

func (f folderOfKeys) file(secret, key string) string { return filepath.Join(string(f), secret, key) }

func (f folderOfKeys) read(t *testing.T, secret, key string) string {
	t.Helper()
	content, err := os.ReadFile(f.file(secret, key))
	testkit.Must(t, err)
	return string(content)
}

// newReplicas prepares three servers.
func newReplicas(t *testing.T) *replicas {
	t.Helper()
	r := &replicas{T: t, keys: folderOfKeys(t.TempDir())}
	err := MakeKeys(t.Context(), KeyOptions{
		Secrets: r.keys, NATSUsers: []string{"watcher", "actuator", "reader"}, RoutesNamespace: "keyturn-system",
		Storage: true, TLSNamespace: "keyturn-system", Updates: r.keys,
		Now: time.Now, Random: rand.Reader, Logger: slog.New(slog.DiscardHandler),
	})
	testkit.Must(t, err)
	r.env = []string{
		"NATS_WATCHER_KEY=" + r.keys.read(t, "keyturn-nats-watcher", "public"),
		"NATS_ACTUATOR_KEY=" + r.keys.read(t, "keyturn-nats-actuator", "public"),
		"NATS_READER_KEY=" + r.keys.read(t, "keyturn-nats-reader", "public"),
		"NATS_TLS_CERT=" + r.keys.file("keyturn-nats-tls", "tls.crt"), "NATS_TLS_KEY=" + r.keys.file("keyturn-nats-tls", "tls.key"),
		"NATS_LISTEN=127.0.0.1:-1", "GORACE=atexit_sleep_ms=0",
	}
	const count = 3
	ports, err := process.FreePorts(3 * count)
	testkit.Must(t, err)
	var routes []string
	for i := range count {
		routes = append(routes, process.Address(ports[3*i]))
	}
	for i := range count {
		dir := t.TempDir()
		config, err := writeDeployed(dir, filepath.Join(string(r.keys), "keyturn-nats-routes"), i, routes)
		testkit.Must(t, err)
		r.servers = append(r.servers, &replica{
			name: fmt.Sprintf("keyturn-actuator-%d", i),
			replicaOptions: replicaOptions{Health: process.Address(ports[3*i+2]), Options: Options{
				Listen: process.Address(ports[3*i+1]), StoreDir: filepath.Join(dir, "data"), ConfigFile: config,
				StorageKey: strings.TrimSpace(r.keys.read(t, storageSecret, storageKey)),
			}},
		})
	}
	return r
}

// start starts a server, and does not wait until it is ready.
func (r *replicas) start(s *replica) {
	r.Helper()
	options, err := json.Marshal(s.replicaOptions)
	testkit.Must(r, err)
	s.process, err = process.Start(process.Options{
		Path: os.Args[0], Name: s.name, LogFile: filepath.Join(r.TempDir(), s.name+".log"),
		Env: append([]string{replicaEnv + "=" + string(options), "POD_NAME=" + s.name}, r.env...),
	})
	testkit.Must(r, err)
	s.process.StopAfter(r.T)
}

// loseVolume kills a server as a crash of its node does, and deletes its store.
func (r *replicas) loseVolume(s *replica) {
	r.Helper()
	s.process.Kill()
	testkit.Must(r, os.RemoveAll(s.StoreDir))
}

// vanish has a server stop answering without closing a connection, as a machine does that loses power.
func (r *replicas) vanish(s *replica) {
	r.Helper()
	testkit.Must(r, s.process.Signal(syscall.SIGSTOP))
}

// resume undoes vanish.
func (r *replicas) resume(s *replica) {
	r.Helper()
	testkit.Must(r, s.process.Signal(syscall.SIGCONT))
}

// readiness returns what the readiness probe of a server says.
func (s *replica) readiness(ctx context.Context) (ready bool, body string) {
	code, body, err := testkit.Get(ctx, "http://"+s.Health+"/readyz")
	if err != nil {
		return false, err.Error()
	}
	return code == http.StatusOK, body
}

// awaitReady waits until a server is ready, and returns how long that took.
func (r *replicas) awaitReady(s *replica) time.Duration {
	r.Helper()
	began, last := time.Now(), ""
	testkit.Await(r.T, s.name+" is ready", func(ctx context.Context) bool {
		var ready bool
		ready, last = s.readiness(ctx)
		return ready
	}, func() string { return last })
	return time.Since(began)
}

// asking connects to ask about streams.
func (r *replicas) asking() jetstream.JetStream {
	r.Helper()
	js, err := jetstream.New(r.connect("actuator"))
	testkit.Must(r, err)
	return js
}

// cluster returns what the servers say about a stream.
func (r *replicas) cluster(js jetstream.JetStream, stream string) *jetstream.ClusterInfo {
	r.Helper()
	var s jetstream.Stream
	var err error
	testkit.Await(r.T, "the leader of stream "+stream+" answers", func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		s, err = js.Stream(ctx, stream)
		return err == nil
	}, func() string { return fmt.Sprint(err) })
	return s.CachedInfo().Cluster
}

// current checks that a server, as the leader or as a follower, has what the streams have, except for the latest changes.
func (r *replicas) current(s *replica) {
	r.Helper()
	js := r.asking()
	for _, stream := range []string{events.StreamChanges, events.StreamHistory, events.StreamDeadLetters} {
		var last string
		testkit.Await(r.T, s.name+" has what stream "+stream+" has", func(context.Context) bool {
			cluster := r.cluster(js, stream)
			last = fmt.Sprintf("it is led by %q, with", cluster.Leader)
			has := cluster.Leader == s.name
			for _, peer := range cluster.Replicas {
				last += fmt.Sprintf(" %+v", *peer)
				has = has || peer.Name == s.name && (peer.Current || peer.Lag <= 10)
			}
			return has
		}, func() string { return last })
	}
}

// connect connects as one of the programs does, to all servers or to the one.
func (r *replicas) connect(program string, only ...*replica) *nats.Conn {
	r.Helper()
	if len(only) == 0 {
		only = r.servers
	}
	var urls string
	for _, s := range only {
		urls += ",nats://" + s.Listen
	}
	connection, err := bus.Connect(r.Context(), bus.ConnectOptions{
		URL: urls[1:], CredsFile: r.keys.file("keyturn-nats-"+program, program+".nk"), Cluster: "blue", Role: program,
		CAFile: r.keys.file("keyturn-nats-tls", "ca.crt"),
	})
	testkit.Must(r, err)
	r.Cleanup(connection.Close)
	return connection
}

// bus connects a program and opens the streams.
func (r *replicas) bus(program string) *bus.Bus {
	r.Helper()
	var b *bus.Bus
	var err error
	connection := r.connect(program)
	testkit.Await(r.T, "the streams are there", func(ctx context.Context) bool {
		b, err = bus.Open(context.WithoutCancel(ctx), connection, "blue", nil)
		return err == nil
	}, func() string { return fmt.Sprint(err) })
	return b
}

// declare declares the streams as the actuator with this server does: again and again, until that succeeds.
func (r *replicas) declare(s *replica) {
	r.Helper()
	js, err := jetstream.New(r.connect("actuator", s))
	testkit.Must(r, err)
	testkit.Await(r.T, s.name+" declares the streams", func(ctx context.Context) bool {
		// Without a deadline each request has the one of the client library, as in the actuator.
		err = bus.Declare(context.WithoutCancel(ctx), js, bus.Declared(len(r.servers)))
		return err == nil
	}, func() string { return fmt.Sprint(err) })
}
