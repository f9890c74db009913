package install

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// need says what breaks without a right.
type need struct {
	account, right string
	// breaks is what does not happen then.
	breaks string
	// done reports whether it has happened.
	done func(*bench) bool
	// beside is what happens all the same, at the time when it would have happened too. Nil where a program that was refused the
	// right says so, or gets no further.
	beside func(*bench) bool
	// env is in the environment of the programs, where the right is needed by some API servers only.
	env string
}

// withoutStreaming makes client-go treat the API server as older than Kubernetes 1.34, which does not stream lists: it lists, then
// watches. With streaming there is only the watch.
const withoutStreaming = "KUBE_FEATURE_WatchListClient=false"

// watches reports whether a program watches a resource. Without the permission, client-go falls back to periodic lists, so that
// changes still roll, but late, and at the cost of a list each time.
func watches(account, resource string) func(*bench) bool {
	return func(b *bench) bool { return b.answered(account, "watch "+resource, 200) }
}

// rolls reports whether a workload was rolled.
func rolls(name string) func(*bench) bool {
	return func(b *bench) bool { return b.revisions()[name] != "" }
}

// needs has a row for each right of deploy/base/rbac.yaml.
func needs() []need {
	all := []need{
		{account: actuatorAccount, right: "create events", breaks: "the outcome of a change is a Kubernetes Event of the workload", done: (*bench).hasEvents},
		{account: actuatorAccount, right: "create leases.coordination.k8s.io", breaks: "the first actuator leads", done: (*bench).leads},
		{account: actuatorAccount, right: "get leases.coordination.k8s.io", breaks: "an actuator sees who leads", done: (*bench).leads},
		{account: actuatorAccount, right: "update leases.coordination.k8s.io", breaks: "the actuator that leads goes on leading", done: (*bench).renews},
	}
	for _, account := range []string{watcherAccount, actuatorAccount} {
		knows := func(b *bench) bool {
			return slices.ContainsFunc(b.requests(account), func(entry testbed.AuditEntry) bool {
				return entry.Code == 200 && entry.Resource == "namespaces" && entry.Name == "kube-system"
			})
		}
		all = append(all, need{account: account, right: "get namespaces", breaks: "a program knows which cluster it is in", done: knows})
	}
	all = append(all,
		need{
			account: actuatorAccount, right: "list namespaces", breaks: "a hold on a namespace is known, with an older API server",
			env: withoutStreaming,
			done: func(b *bench) bool {
				return b.answered(actuatorAccount, "list namespaces", 200) || watches(actuatorAccount, "namespaces")(b)
			},
			beside: rolls("web"), // Without it nothing on a namespace holds a workload.
		},
		need{account: actuatorAccount, right: "watch namespaces", breaks: "a hold on a namespace is heard of at once", done: watches(actuatorAccount, "namespaces")},
	)
	for _, source := range []struct{ resource, reader string }{{"secrets", "web"}, {"configmaps", "api"}} {
		all = append(all, reads(watcherAccount, source.resource, "a change of them rolls", rolls(source.reader))...)
	}
	for _, workload := range []struct{ resource, name, other string }{
		{"deployments.apps", "web", "queue"}, {"statefulsets.apps", "queue", "agent"}, {"daemonsets.apps", "agent", "report"}, {"cronjobs.batch", "report", "web"},
	} {
		all = append(all, reads(actuatorAccount, workload.resource, "one is rolled", rolls(workload.name))...)
		all = append(all, need{
			account: actuatorAccount, right: "patch " + workload.resource, breaks: "one is rolled",
			done: rolls(workload.name), beside: rolls(workload.other),
		})
	}
	return all
}

// reads are the rows of a resource that is listed and watched.
func reads(account, resource, breaks string, done func(*bench) bool) []need {
	return []need{
		{account: account, right: "list " + resource, breaks: breaks + ", with an older API server", done: done, env: withoutStreaming},
		{account: account, right: "watch " + resource, breaks: "a change is heard of at once", done: watches(account, resource)},
	}
}

// shopScene is testdata/shop.yaml, whose Secret and ConfigMap change.
func shopScene() scene {
	return scene{
		prepare: func(b *bench) {
			b.args[watcherAccount] = []string{"--namespaces", b.namespace}
			b.prepare()
			b.apply()
		},
		change: func(ctx context.Context, b *bench, number int) {
			_ = programs.SetSecret(ctx, b.kube, b.namespace, "db", map[string]string{"password": strconv.Itoa(number)})
			_ = programs.SetConfigMap(ctx, b.kube, b.namespace, "app", map[string]string{"level": strconv.Itoa(number)})
		},
	}
}

// with is the scene with the objects of a file, and with arguments for the program that has an account.
func (s scene) with(file, account string, args ...string) scene {
	prepare := s.prepare
	s.prepare = func(b *bench) {
		prepare(b)
		b.applyFile(file)
		b.args[account] = append(b.args[account], args...)
	}
	return s
}

func TestEachRuleIsNeeded(t *testing.T) {
	eachIsNeeded(t, shopScene(), needs(), rulesOf(t, "base/rbac.yaml"))
}

// eachIsNeeded plays a scene with all permissions, in which everything must happen, and once without each of them, in which its
// purpose must not.
func eachIsNeeded(t *testing.T, scene scene, needs []need, rules map[string][]rbacv1.PolicyRule) {
	for server, env := range map[string]string{"that streams lists": "", "that does not": withoutStreaming} {
		t.Run("with all rights everything happens, with an API server "+server, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, scene, rules, env)
			b.run()
			for _, need := range needs {
				testkit.Await(t, need.breaks+" ("+need.right+")", func(context.Context) bool { return need.done(b) })
			}
		})
	}
	for _, need := range needs {
		t.Run("without "+need.right+" it is not so that "+need.breaks, func(t *testing.T) {
			t.Parallel()
			if !rightsOf(rules[need.account])[need.right] {
				t.Fatalf("%s has no right to %s", need.account, need.right)
			}
			b := newBench(t, scene, map[string][]rbacv1.PolicyRule{
				watcherAccount: rules[watcherAccount], actuatorAccount: rules[actuatorAccount],
				need.account: without(rules[need.account], need.right),
			}, need.env)
			b.run()
			testkit.Await(t, "the API server has refused it", func(context.Context) bool { return b.answered(need.account, need.right, 403) })
			if resource, isList := strings.CutPrefix(need.right, "list "); isList && need.beside == nil {
				testkit.Await(t, "the program is not ready, and says why", func(context.Context) bool { return b.isUnready(need.account, resource) })
			}
			if need.beside != nil {
				testkit.Await(t, "what needs other rights happens", func(context.Context) bool { return need.beside(b) })
			}
			if need.done(b) {
				t.Errorf("without the right to %s, it is all the same so that %s", need.right, need.breaks)
			}
		})
	}
}
