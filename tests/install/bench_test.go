package install

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/rights"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

// benchCluster is the name of the cluster that the programs of a bench are in.
const benchCluster = "local"

// withoutStreaming makes client-go treat the API server as older than Kubernetes 1.34, which does not stream lists: it lists, then
// watches. With streaming there is only the watch.
const withoutStreaming = "KUBE_FEATURE_WatchListClient=false"

// scene is what happens on a bench.
type scene struct {
	// prepare creates objects before the programs run, and may add arguments for them.
	prepare func(*bench)
	// change changes what the programs watch. It is called once, when both are ready.
	change func(*bench)
}

// bench is a namespace with a scene, and both programs in it, each with an account that has the rights of the test and no others.
type bench struct {
	*testing.T
	workloads
	custom dynamic.Interface
	// home is the namespace of the accounts and of the Lease.
	home  string
	scene scene
	env   string
	// dir has the files of the programs, and nats is where the embedded NATS is.
	dir, nats string
	// args are the scene's arguments for each program, by account, as in running.
	args       map[string][]string
	running    map[string]*programs.Program
	connection *nats.Conn
	// seen are the requests of the accounts, and read is how far the audit log was read.
	seen []testbed.AuditEntry
	read int64
}

func newBench(t *testing.T, scene scene, grants []rights.Grant, env string) *bench {
	t.Helper()
	b := &bench{
		T: t, workloads: workloads{t, kubernetes.NewForConfigOrDie(plane.Config()), plane.Namespace(t)},
		custom: dynamic.NewForConfigOrDie(plane.Config()), home: plane.Namespace(t), scene: scene, env: env,
		dir: t.TempDir(), nats: process.FreeAddress(t),
		args: map[string][]string{}, running: map[string]*programs.Program{},
	}
	b.makeAccounts(grants)
	b.confine()
	scene.prepare(b)
	var err error
	if b.read, err = plane.AuditEnd(); err != nil {
		t.Fatal(err)
	}
	return b
}

// file writes a file of the programs, and returns its path.
func (b *bench) file(name, content string) string {
	b.Helper()
	path := filepath.Join(b.dir, name)
	testkit.WriteFile(b.T, path, content)
	return path
}

// run starts both programs, and makes the change when both are ready: one before the watcher's first look would only count as observed, and roll
// nothing.
func (b *bench) run() {
	b.Helper()
	b.running[rights.ActuatorAccount] = b.start(rights.ActuatorAccount, binaries.Actuator, "--namespaces", b.namespace,
		"--nats-config", b.file("nats.conf", "listen: \""+b.nats+"\"\n"), "--nats-store-dir", filepath.Join(b.dir, "nats"), "--settle", "50ms", "--max-rolls-per-hour", "0")
	b.running[rights.WatcherAccount] = b.start(rights.WatcherAccount, binaries.Watcher, "--nats-url", "nats://"+b.nats,
		"--fingerprint-key-file", b.file("keys", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"))
	var err error
	if b.connection, err = nats.Connect("nats://"+b.nats, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(b.connection.Close)
	for _, program := range b.running {
		program.AwaitReady(b.T, testkit.Patience)
	}
	b.scene.change(b)
}

// dryRun starts another actuator, which patches nothing.
func (b *bench) dryRun() {
	b.Helper()
	b.start(rights.ActuatorAccount, binaries.Actuator, "--namespaces", b.namespace, "--nats-url", "nats://"+b.nats, "--dry-run")
}

func (b *bench) start(account, binary string, args ...string) *programs.Program {
	b.Helper()
	kubeconfig, err := plane.ServiceAccountKubeconfig(b.Context(), b.home, account)
	testkit.Must(b, err)
	common := []string{"--cluster", benchCluster, "--kubeconfig", kubeconfig, "--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0"}
	return &programs.Program{Process: process.Run(b.T, process.Options{
		Path: binary, Args: slices.Concat(common, args, b.args[account]), Name: strings.TrimPrefix(account, "keyturn-"),
		Env: []string{"GORACE=atexit_sleep_ms=0", "POD_NAMESPACE=" + b.home, b.env},
	})}
}

// isTold reports whether the watcher has published an event about a source.
func (b *bench) isTold(source events.Source) bool {
	reader, err := bus.OpenFleet(b.Context(), b.connection, events.StreamChanges)
	if err != nil {
		return false // The stream is not there yet.
	}
	_, err = reader.Last(b.Context(), events.Subject(benchCluster, source))
	return err == nil
}

func (b *bench) leads() bool { return b.running[rights.ActuatorAccount].Leads() }
