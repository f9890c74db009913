// Package programs runs the watcher and the actuator as an operator would: as processes, with their own service accounts
// and exactly the rights that deploy/base gives them, on a control plane of package testbed. The tests, the demo and the
// benchmark share it.
package programs

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// SystemNamespace is the namespace of the service accounts and of the Lease.
const SystemNamespace = "keyturn-system"

// Options say how the programs are run.
type Options struct {
	// Cluster is the name of the cluster. Empty: "demo".
	Cluster string
	// Dir holds the keys, stores and logs. Required.
	Dir string
	// RBAC is the path of the manifest with the rights, in a folder beside that of the admission policy. Required.
	RBAC string
	// ReloaderPolicy is the strategy of Reloader for which the admission policy lets the actuator write what Reloader writes. Empty: it does not.
	ReloaderPolicy string
	// Binaries are the programs. Zero: they are built, without the race detector.
	Binaries Binaries
	// NATSURL is an outside NATS. Empty: the actuator embeds one, on a loopback port that stays the same.
	NATSURL string
	// Beside means that NATS is a process of its own, which [Programs.StartNATS] starts, as in the actuator's pod: with TLS and encrypted streams.
	Beside bool
	// Actuators is how many actuators there are whose NATS, each beside its own, keep the streams together: 3 or 5, which [Programs.StartReplica]
	// starts. Zero: one, on its own, which [Programs.StartActuator] starts.
	Actuators int
	// WatcherArgs and ActuatorArgs are further arguments.
	WatcherArgs, ActuatorArgs []string
	// Env is added to the environment of both.
	Env []string
}

// Binaries are the paths of the built programs, and of the one with the commands for people.
type Binaries struct{ Watcher, Actuator, Keyturn string }

// Build builds the programs, with the race detector in them where race is true.
func Build(ctx context.Context, race bool) (Binaries, error) {
	var b Binaries
	for pkg, path := range map[string]*string{"./cmd/watcher": &b.Watcher, "./cmd/actuator": &b.Actuator, "./cmd/keyturn": &b.Keyturn} {
		var err error
		if *path, err = build.Program(ctx, pkg, race); err != nil {
			return Binaries{}, err
		}
	}
	return b, nil
}

// Programs starts the programs, as often as needed.
type Programs struct {
	options            Options
	binaries           Binaries
	watcherKubeconfig  string
	actuatorKubeconfig string
	keyFile            string
	natsAddress        string
	// natsCA is the file with the CA of NATS, if that is beside the actuator.
	natsCA string
	// replicas are those of Options.Actuators, if there are several.
	replicas []replica
	// started counts the processes, for the names of their logs. Installations that share a folder share it.
	started *atomic.Int64
}

// New builds the programs and gives them their permissions and keys.
func New(ctx context.Context, cp *testbed.ControlPlane, options Options) (*Programs, error) {
	if options.Cluster == "" {
		options.Cluster = "demo"
	}
	p := &Programs{
		options: options, binaries: options.Binaries, keyFile: filepath.Join(options.Dir, "fingerprint.key"), started: new(atomic.Int64),
	}
	if p.binaries == (Binaries{}) {
		var err error
		if p.binaries, err = Build(ctx, false); err != nil {
			return nil, err
		}
	}
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + SystemNamespace + "\n"
	if err := cp.ApplyYAML(ctx, strings.NewReader(namespace)); err != nil {
		return nil, err
	}
	if err := cp.ApplyKinds(ctx, testbed.RBACKinds(), options.RBAC); err != nil {
		return nil, err
	}
	if err := confine(ctx, cp, options); err != nil {
		return nil, err
	}
	for account, path := range map[string]*string{"keyturn-watcher": &p.watcherKubeconfig, "keyturn-actuator": &p.actuatorKubeconfig} {
		var err error
		if *path, err = cp.ServiceAccountKubeconfig(ctx, SystemNamespace, account); err != nil {
			return nil, err
		}
	}
	if err := p.writeKey(); err != nil {
		return nil, err
	}
	port, err := process.FreePort()
	if err != nil {
		return nil, err
	}
	p.natsAddress = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	config := "listen: $NATS_LISTEN\n"
	if options.Beside || options.Actuators > 0 {
		ca, cert, key := cp.Certificate()
		p.natsCA = ca
		config += fmt.Sprintf("tls: { cert_file: %q, key_file: %q }\n", cert, key)
		if err := os.WriteFile(p.storageKey(), []byte(strings.Repeat("k", 44)), 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(p.natsConfig(), []byte(config), 0o600); err != nil {
		return nil, err
	}
	return p, p.makeReplicas(cp)
}

func (p *Programs) writeKey() error {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return fmt.Errorf("making a fingerprint key: %w", err)
	}
	return os.WriteFile(p.keyFile, []byte(base64.StdEncoding.EncodeToString(key)+"\n"), 0o600)
}

// NATSURL is where the programs find NATS.
func (p *Programs) NATSURL() string {
	if p.options.NATSURL != "" {
		return p.options.NATSURL
	}
	if len(p.replicas) > 0 {
		urls := make([]string, 0, len(p.replicas))
		for _, r := range p.replicas {
			urls = append(urls, "nats://"+r.nats)
		}
		return strings.Join(urls, ",")
	}
	return "nats://" + p.natsAddress
}

// NATSCA is the path of the CA of a NATS beside the actuator, empty for another.
func (p *Programs) NATSCA() string { return p.natsCA }

// Cluster is the name of the cluster.
func (p *Programs) Cluster() string { return p.options.Cluster }

// KeyFile is the path of the fingerprint keys.
func (p *Programs) KeyFile() string { return p.keyFile }

// WatcherBinary is the path of the watcher.
func (p *Programs) WatcherBinary() string { return p.binaries.Watcher }

// KeyturnBinary is the path of the commands for people.
func (p *Programs) KeyturnBinary() string { return p.binaries.Keyturn }

// ActuatorBinary is the path of the actuator.
func (p *Programs) ActuatorBinary() string { return p.binaries.Actuator }

// Upgraded returns the same installation with other programs: its keys, stores, addresses and rights are the same.
func (p *Programs) Upgraded(binaries Binaries) *Programs {
	upgraded := *p
	upgraded.binaries = binaries
	return &upgraded
}

// With returns the same installation with more in its environment.
func (p *Programs) With(env ...string) *Programs {
	more := *p
	more.options.Env = slices.Concat(p.options.Env, env)
	return &more
}

func (p *Programs) commonArgs(kubeconfig string) []string {
	return []string{
		"--cluster", p.options.Cluster, "--kubeconfig", kubeconfig, "--log-level", "debug",
		"--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0",
	}
}

// StartWatcher starts a watcher. It is ready when Ready returns.
func (p *Programs) StartWatcher(further ...string) (*Program, error) {
	args := append(p.commonArgs(p.watcherKubeconfig), "--nats-url", p.NATSURL(), "--fingerprint-key-file", p.keyFile)
	if p.natsCA != "" {
		args = append(args, "--nats-ca", p.natsCA)
	}
	return p.start("watcher", p.binaries.Watcher, append(append(args, p.options.WatcherArgs...), further...))
}

// StartNATS starts the NATS of [Options.Beside].
func (p *Programs) StartNATS() (*Program, error) {
	return p.With("NATS_LISTEN="+p.natsAddress).startNATS(p.natsConfig(), p.natsStore())
}

// startNATS starts a NATS beside an actuator.
func (p *Programs) startNATS(config, store string) (*Program, error) {
	return p.start("nats", p.binaries.Keyturn, []string{
		"nats", "--cluster", p.options.Cluster, "--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0", "--nats-config", config,
		"--nats-store-dir", store, "--nats-storage-key", p.storageKey(),
	})
}

// StartActuator starts an actuator, with the embedded NATS unless there is one beside it, or an outside one.
func (p *Programs) StartActuator(further ...string) (*Program, error) {
	args := p.commonArgs(p.actuatorKubeconfig)
	switch {
	case p.options.NATSURL != "":
		args = append(args, "--nats-url", p.options.NATSURL)
	case p.options.Beside:
		args = append(args, "--nats-url", p.NATSURL(), "--nats-ca", p.natsCA, "--nats-replicas", "1")
	default:
		args = append(args, "--nats-config", p.natsConfig(), "--nats-store-dir", p.natsStore())
	}
	return p.With("NATS_LISTEN="+p.natsAddress).start("actuator", p.binaries.Actuator, append(append(args, p.options.ActuatorArgs...), further...))
}

// natsConfig is the configuration of NATS, which has its address from the environment, as that of deploy/programs has.
func (p *Programs) natsConfig() string { return filepath.Join(p.options.Dir, "nats.conf") }

func (p *Programs) natsStore() string { return filepath.Join(p.options.Dir, "nats") }

func (p *Programs) storageKey() string { return filepath.Join(p.options.Dir, "storage.key") }

func (p *Programs) start(name, binary string, args []string) (*Program, error) {
	process, err := process.Start(process.Options{
		Path: binary, Args: args, Env: p.options.Env, Name: name,
		LogFile: filepath.Join(p.options.Dir, fmt.Sprintf("%s-%d.log", name, p.started.Add(1))),
	})
	if err != nil {
		return nil, err
	}
	return &Program{Process: process}, nil
}

// Program is a running watcher, actuator or reloader.
type Program struct {
	*process.Process

	// probes is the component that answers the probes. Empty: health.
	probes string
}

// Ready waits until the program's readiness probe passes.
func (p *Program) Ready(ctx context.Context) error {
	last := "it was not asked"
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.Done():
			return false, process.ErrExited
		default:
		}
		status, body, err := p.Get(ctx, cmp.Or(p.probes, "health"), "/readyz")
		last = body
		if err != nil {
			last = err.Error()
		}
		return err == nil && status == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the %s to be ready: %w (%s); its log ends with:\n%s", p.Name(), err, last, p.tail())
	}
	return nil
}

// AwaitReady fails a test unless the readiness probe passes within a limit.
func (p *Program) AwaitReady(t testing.TB, limit time.Duration) {
	t.Helper()
	ctx, stop := running.WithTimeout(t.Context(), limit)
	defer stop()
	testkit.Must(t, p.Ready(ctx))
}

// StopIn stops a program in a test, which fails unless it ends well.
func (p *Program) StopIn(t testing.TB, grace time.Duration) {
	t.Helper()
	if err := p.Stop(grace); err != nil {
		t.Fatalf("stopping the %s: %v", p.Name(), err)
	}
}

// Leads reports whether an actuator has logged that it was elected leader.
func (p *Program) Leads() bool {
	return strings.Contains(p.Output(), "became the leader")
}

// client asks the programs for their health and metrics.
var client = &http.Client{Timeout: 10 * time.Second}

// Get reads a path that the program serves, such as /metrics of the component "metrics" or /readyz of "health", whatever
// the status. An error is that nothing answers there.
func (p *Program) Get(ctx context.Context, component, path string) (status int, body string, err error) {
	address := p.Address(component)
	if address == "" {
		return 0, "", fmt.Errorf("the %s does not serve %s yet", p.Name(), component)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// Address returns where the program serves its health or metrics, by its log, or nothing if it does not yet.
func (p *Program) Address(component string) string {
	for line := range strings.Lines(p.Output()) {
		var entry struct{ Msg, Component, Addr string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "listening" && entry.Component == component {
			return entry.Addr
		}
	}
	return ""
}

func (p *Program) tail() string {
	output := p.Output()
	return output[max(0, len(output)-3000):]
}
