package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
)

// cluster is the name of the cluster in events.
const cluster = "soak"

// installation is Keyturn with its links: either one actuator with its embedded NATS and one watcher, or three actuators, whose
// servers form a JetStream cluster, and two watchers.
type installation struct {
	watchers, actuators []*keeper
	// stores are the folders of the NATS servers, and addresses are where they listen, both in the order of the actuators.
	stores, addresses []string
	// links are the links that can be cut, by name.
	links map[string]*link

	mu sync.Mutex
	// crashed are the programs that have crashed and were started again.
	crashed []incident
}

// The links.
const (
	watcherNATS = "watcher and NATS"
	watcherAPI  = "watcher and API server"
	actuatorAPI = "actuator and API server"
)

// newInstallation prepares the programs, but starts none. The caller must close it, even after an error.
func newInstallation(ctx context.Context, cp *testbed.ControlPlane, s settings) (*installation, error) {
	i := &installation{links: make(map[string]*link)}
	dir := filepath.Join(cp.Dir(), "programs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return i, fmt.Errorf("making a folder: %w", err)
	}
	p, err := programs.New(ctx, cp, programs.Options{
		Cluster: cluster, Dir: dir, RBAC: filepath.Join(s.root, "deploy/base/rbac.yaml"), Binaries: s.binaries,
		Env: []string{"GORACE=atexit_sleep_ms=0"}, WatcherArgs: []string{"--namespaces", namespace},
		// In a soak, workloads change more often within an hour than anywhere else.
		ActuatorArgs: []string{"--max-rolls-per-hour", "0"},
	})
	if err != nil {
		return i, err
	}
	servers, err := i.layOut(dir, s.actuators)
	if err != nil {
		return i, err
	}
	if err := i.connect(ctx, cp); err != nil {
		return i, err
	}
	watcherConfig, err := throughLink(ctx, cp, "keyturn-watcher", i.links[watcherAPI])
	if err != nil {
		return i, err
	}
	actuatorConfig, err := throughLink(ctx, cp, "keyturn-actuator", i.links[actuatorAPI])
	if err != nil {
		return i, err
	}
	for n, args := range servers {
		i.actuators = append(i.actuators, i.keep("actuator", n, func() (*programs.Program, error) {
			return p.StartActuator(append(args, "--kubeconfig", actuatorConfig)...)
		}))
	}
	for n := range 1 + s.actuators/2 {
		i.watchers = append(i.watchers, i.keep("watcher", n, func() (*programs.Program, error) {
			return p.StartWatcher("--kubeconfig", watcherConfig, "--nats-url", "nats://"+i.links[watcherNATS].address())
		}))
	}
	return i, nil
}

func (i *installation) keep(what string, n int, begin func() (*programs.Program, error)) *keeper {
	name := what + " " + strconv.Itoa(n)
	return &keeper{name: name, begin: begin, ended: func(p *programs.Program) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.crashed = append(i.crashed, crash(name, p)...)
	}}
}

// throughLink returns the path of a kubeconfig for a service account that connects through a link.
func throughLink(ctx context.Context, cp *testbed.ControlPlane, account string, via *link) (string, error) {
	direct, err := cp.ServiceAccountKubeconfig(ctx, programs.SystemNamespace, account)
	if err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(direct)
	if err != nil {
		return "", fmt.Errorf("reading a kubeconfig: %w", err)
	}
	for _, server := range config.Clusters {
		server.Server = "https://" + via.address()
	}
	path := filepath.Join(cp.Dir(), account+"-linked.kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return path, nil
}

func (i *installation) keepers() []*keeper { return slices.Concat(i.actuators, i.watchers) }

// start starts the actuators, then the watchers when the actuators are ready, and waits until these are ready, too.
func (i *installation) start(ctx context.Context) error {
	for _, keepers := range [][]*keeper{i.actuators, i.watchers} {
		for _, k := range keepers {
			if err := k.start(); err != nil {
				return err
			}
		}
		for _, k := range keepers {
			if err := k.ready(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// ready waits until all programs are ready.
func (i *installation) ready(ctx context.Context) error {
	for _, k := range i.keepers() {
		if err := k.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// crashes returns the programs that have crashed, or that have logged a data race and still run.
func (i *installation) crashes() []incident {
	i.mu.Lock()
	defer i.mu.Unlock()
	found := slices.Clone(i.crashed)
	for _, k := range i.keepers() {
		if !k.now().Ended() {
			found = append(found, crash(k.name, k.now())...)
		}
	}
	return found
}

func (i *installation) close() {
	for _, k := range slices.Backward(i.keepers()) {
		k.close()
	}
	for _, l := range i.links {
		l.close()
	}
}

// natsURL returns the URLs at which the soak itself reads the streams.
func (i *installation) natsURL() string { return "nats://" + strings.Join(i.addresses, ",nats://") }
