package install

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
)

// need says what breaks without a right.
type need struct {
	account, right string
	// breaks is what does not happen then.
	breaks string
	// done tells whether it has happened.
	done func(*bench) bool
	// env is in the environment of the programs, where the right is needed by some API servers only.
	env string
}

// withoutStreaming makes client-go believe that the API server is one before Kubernetes 1.34, which does not stream lists: it asks for a
// list, and then watches. With one that does, the watch is all that there is.
const withoutStreaming = "KUBE_FEATURE_WatchListClient=false"

// watches tells of a resource whether a program hears of its changes as they are made. Without the right to watch it client-go falls back on
// listing it anew, now and then, so that what changed rolls all the same: late, and at the price of a list each time.
func watches(account, resource string) func(*bench) bool {
	return func(b *bench) bool {
		return slices.ContainsFunc(b.requests(account), func(entry testbed.AuditEntry) bool {
			return entry.Code == 200 && right(entry.Verb, entry.Group, entry.Resource) == "watch "+resource
		})
	}
}

// needs has a row for each right of deploy/base/rbac.yaml.
func needs() []need {
	rolls := func(name string) func(*bench) bool {
		return func(b *bench) bool { return b.revisions()[name] != "" }
	}
	all := []need{
		{"keyturn-actuator", "create events", "what became of a change is told on the workload", (*bench).hasEvents, ""},
		{"keyturn-actuator", "create leases.coordination.k8s.io", "the first actuator leads", (*bench).leads, ""},
		{"keyturn-actuator", "get leases.coordination.k8s.io", "an actuator sees who leads", (*bench).leads, ""},
		{"keyturn-actuator", "update leases.coordination.k8s.io", "the actuator that leads goes on leading", (*bench).renews, ""},
	}
	for _, account := range []string{"keyturn-watcher", "keyturn-actuator"} {
		knows := func(b *bench) bool {
			return slices.ContainsFunc(b.requests(account), func(entry testbed.AuditEntry) bool {
				return entry.Code == 200 && entry.Resource == "namespaces" && entry.Name == "kube-system"
			})
		}
		all = append(all, need{account, "get namespaces", "a program knows which cluster it is in", knows, ""})
	}
	for _, source := range []struct{ resource, reader string }{{"secrets", "web"}, {"configmaps", "api"}} {
		all = append(
			all,
			need{"keyturn-watcher", "list " + source.resource, "a change of them rolls, with an older API server", rolls(source.reader), withoutStreaming},
			need{"keyturn-watcher", "watch " + source.resource, "a change is heard of at once", watches("keyturn-watcher", source.resource), ""},
		)
	}
	for _, workload := range []struct{ resource, name string }{
		{"deployments.apps", "web"}, {"statefulsets.apps", "queue"}, {"daemonsets.apps", "agent"}, {"cronjobs.batch", "report"},
	} {
		all = append(
			all,
			need{"keyturn-actuator", "list " + workload.resource, "one is rolled, with an older API server", rolls(workload.name), withoutStreaming},
			need{"keyturn-actuator", "watch " + workload.resource, "a change is heard of at once", watches("keyturn-actuator", workload.resource), ""},
			need{"keyturn-actuator", "patch " + workload.resource, "one is rolled", rolls(workload.name), ""},
		)
	}
	return all
}

func TestEachRuleIsNeeded(t *testing.T) {
	rules := rulesOfBase(t)
	for account, rules := range rules {
		for name := range rightsOf(rules) {
			if !slices.ContainsFunc(needs(), func(n need) bool { return n.account == account && n.right == name }) {
				t.Errorf("%s may %s: what is it for? It has no row in needs", account, name)
			}
		}
	}
	for server, env := range map[string]string{"that streams lists": "", "that does not": withoutStreaming} {
		t.Run("with all rights everything happens, with an API server "+server, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, rules, env)
			b.run()
			for _, need := range needs() {
				eventually(t, need.breaks+" ("+need.right+")", func(context.Context) bool { return need.done(b) })
			}
		})
	}
	for _, need := range needs() {
		t.Run("without "+need.right+" it is not so that "+need.breaks, func(t *testing.T) {
			t.Parallel()
			if !rightsOf(rules[need.account])[need.right] {
				t.Fatalf("%s has no right to %s", need.account, need.right)
			}
			b := newBench(t, map[string][]rbacv1.PolicyRule{
				"keyturn-watcher": rules["keyturn-watcher"], "keyturn-actuator": rules["keyturn-actuator"],
				need.account: without(rules[need.account], need.right),
			}, need.env)
			b.run()
			eventually(t, "the API server has refused it", func(context.Context) bool { return b.refused(need.account, need.right) })
			if need.done(b) {
				t.Errorf("without the right to %s, it is all the same so that %s", need.right, need.breaks)
			}
		})
	}
}

// rulesOfBase are the rules that deploy/base gives each account.
func rulesOfBase(t *testing.T) map[string][]rbacv1.PolicyRule {
	t.Helper()
	content, err := os.ReadFile("../../deploy/base/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][]rbacv1.PolicyRule{}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" || role.Kind == "Role" {
			account := strings.TrimSuffix(role.Name, "-leader")
			rules[account] = append(rules[account], role.Rules...)
		}
	}
	return rules
}

// without returns the rules, one for each verb and resource, but for one right.
func without(rules []rbacv1.PolicyRule, gone string) []rbacv1.PolicyRule {
	var left []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if right(verb, rule.APIGroups[0], resource) != gone {
					left = append(left, rbacv1.PolicyRule{
						APIGroups: rule.APIGroups, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: rule.ResourceNames,
					})
				}
			}
		}
	}
	return left
}

// bench is a namespace with workloads, and both programs in it, each with an account that has the rules of the test and no others.
type bench struct {
	*testing.T
	workloads
	begin    int64
	env      string
	actuator *testbed.Process
}

func newBench(t *testing.T, rules map[string][]rbacv1.PolicyRule, env string) *bench {
	t.Helper()
	b := &bench{T: t, workloads: workloads{t, kubernetes.NewForConfigOrDie(plane.Config()), plane.Namespace(t)}, env: env}
	for account, rules := range rules {
		object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
		if _, err := b.kube.CoreV1().ServiceAccounts(b.namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		// A Namespace is in itself, as far as rights go.
		ofNamespaces := func(rule rbacv1.PolicyRule) bool { return slices.Equal(rule.Resources, []string{"namespaces"}) }
		at := slices.IndexFunc(rules, ofNamespaces)
		if at >= 0 {
			b.grant(metav1.NamespaceSystem, account, rules[at])
		}
		b.grant(b.namespace, account, slices.DeleteFunc(slices.Clone(rules), ofNamespaces)...)
	}
	b.secret("db", "one")
	b.configMap("app", "one")
	b.apply()
	var err error
	if b.begin, err = plane.AuditEnd(); err != nil {
		t.Fatal(err)
	}
	return b
}

// grant gives an account of the test rights in a namespace.
func (b *bench) grant(namespace, account string, rules ...rbacv1.PolicyRule) {
	b.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: b.namespace + "-" + account}
	if _, err := b.kube.RbacV1().Roles(namespace).Create(b.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.namespace, Name: account}},
	}
	if _, err := b.kube.RbacV1().RoleBindings(namespace).Create(b.Context(), binding, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// run starts both programs, and changes what the workloads read until they have seen it: what changed before the watcher knew of it
// is first seen then, and rolls nothing.
func (b *bench) run() {
	b.Helper()
	port, err := testbed.FreePort()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	keyFile := filepath.Join(dir, "keys")
	if err := os.WriteFile(keyFile, []byte("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	nats := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	b.actuator = b.start("actuator", binaries.Actuator, "--nats-embedded", "--nats-listen", nats, "--nats-store-dir", filepath.Join(dir, "nats"),
		"--settle", "50ms", "--lease-namespace", b.namespace)
	b.start("watcher", binaries.Watcher, "--nats-url", "nats://"+nats, "--fingerprint-key-file", keyFile)
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
				// What cannot be written now is written next time.
				_ = programs.SetSecret(b.Context(), b.kube, b.namespace, "db", map[string]string{"password": strconv.Itoa(number)})
				_ = programs.SetConfigMap(b.Context(), b.kube, b.namespace, "app", map[string]string{"level": strconv.Itoa(number)})
			}
		}
	}()
	b.Cleanup(func() {
		close(stop)
		<-done
	})
}

func (b *bench) start(program, binary string, args ...string) *testbed.Process {
	b.Helper()
	kubeconfig, err := plane.ServiceAccountKubeconfig(b.Context(), b.namespace, "keyturn-"+program)
	if err != nil {
		b.Fatal(err)
	}
	common := []string{
		"--cluster", "local", "--namespaces", b.namespace, "--kubeconfig", kubeconfig, "--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0",
	}
	return testbed.RunProcess(b.T, testbed.ProcessOptions{
		Path: binary, Args: append(common, args...), Name: program, Env: []string{"GORACE=atexit_sleep_ms=0", b.env},
	})
}

// refused tells whether the API server has refused a request of an account that needs the right.
func (b *bench) refused(account, needed string) bool {
	return slices.ContainsFunc(b.requests(account), func(entry testbed.AuditEntry) bool {
		return entry.Code == 403 && right(entry.Verb, entry.Group, entry.Resource) == needed
	})
}

func (b *bench) requests(account string) []testbed.AuditEntry {
	entries, _, err := plane.AuditSince(b.begin)
	if err != nil {
		b.Fatal(err)
	}
	return testbed.Requests(entries, testbed.ServiceAccountUser(b.namespace, account))
}

func (b *bench) hasEvents() bool {
	list, err := b.kube.CoreV1().Events(b.namespace).List(b.Context(), metav1.ListOptions{FieldSelector: "source=keyturn"})
	return err == nil && len(list.Items) > 0
}

func (b *bench) leads() bool {
	return strings.Contains(b.actuator.Output(), "this actuator is the leader now")
}

func (b *bench) renews() bool {
	lease, err := b.kube.CoordinationV1().Leases(b.namespace).Get(b.Context(), "keyturn-actuator", metav1.GetOptions{})
	return err == nil && lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time)
}
