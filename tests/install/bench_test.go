package install

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// The accounts of the programs, which are named for them.
const (
	watcherAccount  = "keyturn-watcher"
	actuatorAccount = "keyturn-actuator"
)

// benchCluster is the name of the cluster that the programs of a bench are in.
const benchCluster = "local"

// scene is what happens on a bench.
type scene struct {
	// prepare creates objects before the programs run, and may add arguments for them.
	prepare func(*bench)
	// change changes what the programs watch. It is called repeatedly, so a failed write is made by the next call.
	change func(ctx context.Context, b *bench, number int)
}

// bench is a namespace with a scene, and both programs in it, each with an account that has the rules of the test and no others.
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

func newBench(t *testing.T, scene scene, rules map[string][]rbacv1.PolicyRule, env string) *bench {
	t.Helper()
	port, err := process.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{
		T: t, workloads: workloads{t, kubernetes.NewForConfigOrDie(plane.Config()), plane.Namespace(t)},
		custom: dynamic.NewForConfigOrDie(plane.Config()), home: plane.Namespace(t), scene: scene, env: env,
		dir: t.TempDir(), nats: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		args: map[string][]string{}, running: map[string]*programs.Program{},
	}
	for account, rules := range rules {
		object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
		if _, err := b.kube.CoreV1().ServiceAccounts(b.home).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.grant(account, rules)
	}
	b.confine(rightsOf(rules[actuatorAccount])["create leases.coordination.k8s.io"])
	scene.prepare(b)
	if b.read, err = plane.AuditEnd(); err != nil {
		t.Fatal(err)
	}
	return b
}

// grant grants an account of the test permissions in the cluster, as most manifests do.
func (b *bench) grant(account string, rules []rbacv1.PolicyRule) {
	b.Helper()
	meta, rbac := metav1.ObjectMeta{Name: b.namespace + "-" + account}, b.kube.RbacV1()
	if _, err := rbac.ClusterRoles().Create(b.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.home, Name: account}},
	}
	if _, err := rbac.ClusterRoleBindings().Create(b.Context(), binding, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// confine applies the admission policy for the actuator of the test, and waits until it is in force, if that account may ask.
func (b *bench) confine(asks bool) {
	b.Helper()
	policy, err := programs.ReadPolicy("../../deploy", "")
	if err != nil {
		b.Fatal(err)
	}
	if err := plane.ApplyYAML(b.Context(), strings.NewReader(strings.ReplaceAll(policy, "keyturn-system", b.home))); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		policies, ctx := b.kube.AdmissionregistrationV1(), context.WithoutCancel(b.Context())
		if err := policies.ValidatingAdmissionPolicyBindings().Delete(ctx, b.home+"-actuator", metav1.DeleteOptions{}); err != nil {
			b.Error(err)
		}
		if err := policies.ValidatingAdmissionPolicies().Delete(ctx, b.home+"-actuator", metav1.DeleteOptions{}); err != nil {
			b.Error(err)
		}
	})
	if !asks {
		return
	}
	config, err := plane.ServiceAccountConfig(b.Context(), b.home, actuatorAccount)
	if err != nil {
		b.Fatal(err)
	}
	if err := programs.AwaitPolicy(b.Context(), kubernetes.NewForConfigOrDie(config), b.home); err != nil {
		b.Fatal(err)
	}
}

// file writes a file of the programs, and returns its path.
func (b *bench) file(name, content string) string {
	b.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// run starts both programs and repeats the change until they have seen it: a change before the watcher's first look only counts
// as observed, and rolls nothing.
func (b *bench) run() {
	b.Helper()
	b.start(actuatorAccount, binaries.Actuator, "--namespaces", b.namespace, "--nats-embedded", "--nats-listen", b.nats,
		"--nats-store-dir", filepath.Join(b.dir, "nats"), "--settle", "50ms", "--max-rolls-per-hour", "0", "--lease-namespace", b.home)
	b.start(watcherAccount, binaries.Watcher, "--nats-url", "nats://"+b.nats,
		"--fingerprint-key-file", b.file("keys", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"))
	var err error
	if b.connection, err = nats.Connect("nats://"+b.nats, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(b.connection.Close)
	changes := time.NewTicker(500 * time.Millisecond)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer changes.Stop()
		for number := 2; ; number++ {
			select {
			case <-stop:
				return
			case <-changes.C:
				b.scene.change(b.Context(), b, number)
			}
		}
	}()
	b.Cleanup(func() {
		close(stop)
		<-done
	})
}

func (b *bench) start(account, binary string, args ...string) {
	b.Helper()
	kubeconfig, err := plane.ServiceAccountKubeconfig(b.Context(), b.home, account)
	if err != nil {
		b.Fatal(err)
	}
	common := []string{"--cluster", benchCluster, "--kubeconfig", kubeconfig, "--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0"}
	b.running[account] = &programs.Program{Process: process.Run(b.T, process.Options{
		Path: binary, Args: slices.Concat(common, args, b.args[account]), Name: strings.TrimPrefix(account, "keyturn-"),
		Env: []string{"GORACE=atexit_sleep_ms=0", b.env},
	})}
}

// requests are those that an account has made since the scene was prepared.
func (b *bench) requests(account string) []testbed.AuditEntry {
	entries, end, err := plane.AuditSince(b.read)
	if err != nil {
		b.Fatal(err)
	}
	b.read = end
	for _, entry := range entries {
		if strings.HasPrefix(entry.User, testbed.ServiceAccountUser(b.home, "")) {
			b.seen = append(b.seen, entry)
		}
	}
	return testbed.Requests(b.seen, testbed.ServiceAccountUser(b.home, account))
}

// answered reports whether the API server has answered an account's request, for which a permission is needed, with a status.
func (b *bench) answered(account, needed string, code int) bool {
	return slices.ContainsFunc(b.requests(account), func(entry testbed.AuditEntry) bool {
		return entry.Code == code && right(entry.Verb, entry.Group, entry.Resource) == needed
	})
}

// isUnready reports whether a program's readiness check says that it was denied a resource.
func (b *bench) isUnready(account, resource string) bool {
	status, why, err := b.running[account].Get(b.Context(), "health", "/readyz")
	return err == nil && status == http.StatusServiceUnavailable && strings.Contains(why, resource+" is forbidden: ")
}

// isTold reports whether the watcher has published an event about a source.
func (b *bench) isTold(source events.Source) bool {
	reader, err := events.OpenFleet(b.Context(), b.connection, events.StreamChanges)
	if err != nil {
		return false // The stream is not there yet.
	}
	_, err = reader.Last(b.Context(), events.Subject(benchCluster, source))
	return err == nil
}

func (b *bench) hasEvents() bool {
	list, err := b.kube.CoreV1().Events(b.namespace).List(b.Context(), metav1.ListOptions{FieldSelector: "source=keyturn"})
	return err == nil && len(list.Items) > 0
}

func (b *bench) leads() bool { return b.running[actuatorAccount].Leads() }

func (b *bench) renews() bool {
	lease, err := b.kube.CoordinationV1().Leases(b.home).Get(b.Context(), "keyturn-actuator", metav1.GetOptions{})
	return err == nil && lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time)
}
