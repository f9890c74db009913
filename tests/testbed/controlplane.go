package testbed

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// ControlPlane is a running Kubernetes control plane. Its methods may be called concurrently.
type ControlPlane struct {
	opts   Options
	dir    string
	ports  ports
	pki    pki
	tokens map[string]string // by user
	// binaries are the paths of the servers, by name.
	binaries map[string]string
	config   *rest.Config
	client   *kubernetes.Clientset
	applier  *applier
	// installed are the kinds of operators that it serves.
	installed installed

	// reviving is held while servers are restarted that have ended.
	reviving sync.Mutex

	mu sync.Mutex
	// running are the processes in the order of their start. A process that was started again keeps its place.
	running []*process.Process
	starts  int
	stopped bool
}

// ports are the ports on which the servers of one control plane listen.
type ports struct{ etcd, apiServer, controllers, node int }

// Start starts a control plane and waits until every part of it serves and its node is ready, which takes four to six
// seconds. Servers that have not been built yet are built first, which the context also bounds. The control plane outlives
// the context: the caller ends it with [ControlPlane.Stop]. An error names the server that failed, and has the end of its
// log.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	opts = opts.withDefaults()
	cp := &ControlPlane{opts: opts, binaries: map[string]string{}, installed: installed{names: map[string][]string{}}}
	for _, name := range opts.servers() {
		path, err := build.Binary(ctx, opts.Log, name)
		if err != nil {
			return nil, err
		}
		cp.binaries[name] = path
	}
	start := time.Now()
	if err := cp.prepare(); err != nil {
		cp.Stop()
		return nil, fmt.Errorf("prepare the control plane: %w", err)
	}
	if err := cp.start(ctx); err != nil {
		cp.Stop()
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	fmt.Fprintf(opts.Log, "testbed: control plane ready in %.1fs, files in %s\n", time.Since(start).Seconds(), cp.dir)
	return cp, nil
}

// prepare creates everything that the servers need before the first of them starts.
func (cp *ControlPlane) prepare() error {
	dir, err := process.MakeDir(cp.opts.Dir)
	if err != nil {
		return err
	}
	cp.dir = dir
	free, err := process.FreePorts(4)
	if err != nil {
		return err
	}
	cp.ports = ports{etcd: free[0], apiServer: free[1], controllers: free[2], node: free[3]}
	if cp.pki, err = newPKI(dir); err != nil {
		return err
	}
	if err := cp.makeUsers(); err != nil {
		return err
	}
	if cp.config, err = cp.adminConfig(); err != nil {
		return err
	}
	if cp.client, err = kubernetes.NewForConfig(cp.config); err != nil {
		return err
	}
	cp.applier, err = newApplier(cp.config, cp.client.Discovery())
	return err
}

// start starts the servers in the order of their dependencies: nothing starts before the servers that it connects to are
// ready, because some servers exit otherwise. The last two do not depend on each other and start together.
func (cp *ControlPlane) start(ctx context.Context) error {
	if err := cp.startEtcd(ctx); err != nil {
		return err
	}
	if err := cp.startAPIServer(ctx); err != nil {
		return err
	}
	var starts []func() (ready, error)
	if !cp.opts.WithoutControllers {
		starts = append(starts, cp.startControllers)
	}
	if !cp.opts.WithoutNode {
		starts = append(starts, cp.startNode)
	}
	var waits []ready
	for _, start := range starts {
		wait, err := start()
		if err != nil {
			return err
		}
		waits = append(waits, wait)
	}
	for _, wait := range waits {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	if cp.opts.WithoutControllers {
		return nil
	}
	// Tests rely on it, and the controllers only create it after they are ready.
	return cp.waitServiceAccount(ctx, metav1.NamespaceDefault)
}

// Stop ends the servers in the reverse order of their start, and waits for each. It removes the folder if Start created it.
// Calling it again does nothing.
func (cp *ControlPlane) Stop() {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopped {
		return
	}
	cp.stopped = true
	for _, server := range slices.Backward(cp.running) {
		// How a server ends does not matter: everything that it wrote is removed.
		_ = server.Stop(process.StopGrace)
	}
	if cp.opts.Dir == "" {
		_ = os.RemoveAll(cp.dir)
	}
}

// Config returns a configuration for the cluster's admin, whose requests are not limited.
func (cp *ControlPlane) Config() *rest.Config { return rest.CopyConfig(cp.config) }

// Kubeconfig returns the path of a kubeconfig for the cluster's admin. The file exists until Stop.
func (cp *ControlPlane) Kubeconfig() string { return cp.kubeconfig(adminUser) }

// Certificate returns the paths of a certificate for loopback, for servers and clients, of its key and of the CA that issued it.
func (cp *ControlPlane) Certificate() (ca, cert, key string) {
	return cp.pki.ca, cp.pki.cert, cp.pki.key
}

// Dir returns the folder with the data, the credentials and the log of each server.
func (cp *ControlPlane) Dir() string { return cp.dir }

// Processes returns the servers and operators that have been started, including those that have ended, in the order of their
// start.
func (cp *ControlPlane) Processes() []*process.Process {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	return append([]*process.Process(nil), cp.running...)
}

// Server returns the last process of a server or operator, by its name in package build, or nil if it was never started.
func (cp *ControlPlane) Server(name string) *process.Process {
	for _, p := range cp.Processes() {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

func (cp *ControlPlane) kill(name string) {
	if p := cp.Server(name); p != nil {
		p.Kill()
	}
}
