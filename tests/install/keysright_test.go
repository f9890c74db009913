package install

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/keys"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// The account of the Job of deploy/keys.
const keysAccount = "keyturn-keys"

// installationKeys are the Secrets that the Job makes.
var installationKeys = append(
	[]string{"keyturn-fingerprint-key", "keyturn-nats-watcher", "keyturn-nats-actuator", "keyturn-nats-reader"}, secretsOfNATS...)

// secretsOfNATS are the only ones that the Job may read and change.
var secretsOfNATS = []string{"keyturn-nats-ca", "keyturn-nats-tls"}

// keysNeeds has a row for each of its rights, with what the Job says without it.
func keysNeeds() []need {
	return []need{
		{account: keysAccount, right: "create secrets", breaks: "creating secret keyturn-fingerprint-key"},
		{account: keysAccount, right: "get secrets", breaks: "reading secret keyturn-nats-tls"},
		{account: keysAccount, right: "update secrets", breaks: "updating secret keyturn-nats-tls"},
	}
}

// keysOverlay is deploy/keys without its rights.
const keysOverlay = `
resources: [../deploy/keys]
namespace: SERVED
patches:
  - target: {kind: Job}
    patch: |
      - {op: replace, path: /spec/template/spec/containers/0/args/0, value: --namespace=SERVED}
  - target: {kind: Role}
    patch: |
      - {op: replace, path: /rules, value: []}
`

func TestWithoutOneOfItsRightsTheJobOfTheKeysFails(t *testing.T) {
	for _, need := range keysNeeds() {
		t.Run(need.right, func(t *testing.T) {
			t.Parallel()
			j := newKeysJob(t)
			user := testbed.ServiceAccountUser(j.namespace, keysAccount)
			if need.right == "update secrets" {
				j.makeCertificate(time.Now().AddDate(-2, 0, 0)) // Of three years, so it must be renewed.
			}
			before := j.secrets()
			j.grant(without(rulesOf(t, "keys/rbac.yaml")[keysAccount], need.right))
			begin, err := plane.AuditEnd()
			if err != nil {
				t.Fatal(err)
			}
			j.failsFor(need.breaks)
			testkit.Await(t, "the API server has refused it", func(context.Context) bool {
				entries, _, err := plane.AuditSince(begin)
				return err == nil && slices.ContainsFunc(testbed.Requests(entries, user), func(entry testbed.AuditEntry) bool {
					return entry.Code == 403 && right(entry.Verb, entry.Group, entry.Resource) == need.right
				})
			})
			for _, name := range secretsOfNATS {
				if got := j.secrets()[name]; got != before[name] {
					t.Errorf("the Secret %s was written: got version %q, want %q", name, got, before[name])
				}
			}
			j.grant(rulesOf(t, "keys/rbac.yaml")[keysAccount])
			testkit.Await(t, "a further try of the Job succeeds", func(context.Context) bool { return j.end(j.run("keys")) == nil })
			for _, name := range installationKeys {
				if len(j.secret(name)) == 0 {
					t.Errorf("the Secret %s is empty", name)
				}
			}
			if after := j.secrets()["keyturn-nats-tls"]; after == before["keyturn-nats-tls"] {
				t.Errorf("the certificate was not renewed")
			}
		})
	}
}

// keysJob is the Job in a namespace of its own.
type keysJob struct {
	*kubelet
}

func newKeysJob(t *testing.T) keysJob {
	t.Helper()
	j := keysJob{newKubelet(t, plane.Namespace(t))}
	applyOverlay(t, j.namespace, keysOverlay)
	testkit.Await(t, "there is a pod of the Job", func(context.Context) bool { return len(j.pods("keys")) == 1 })
	return j
}

// grant replaces the rules of the Job's role, and waits until the API server follows them.
func (j keysJob) grant(rules []rbacv1.PolicyRule) {
	j.Helper()
	roles := j.client.RbacV1().Roles(j.namespace)
	role, err := roles.Get(j.Context(), keysAccount, metav1.GetOptions{})
	if err != nil {
		j.Fatal(err)
	}
	role.Rules = rules
	if _, err := roles.Update(j.Context(), role, metav1.UpdateOptions{}); err != nil {
		j.Fatal(err)
	}
}

// failsFor waits until the Job fails for what a right is missing to. Before, it may lack others, which the API server learns of by and by.
func (j keysJob) failsFor(what string) {
	j.Helper()
	want := "error: " + what
	testkit.Await(j.T, "the Job fails "+what, func(context.Context) bool {
		refused := j.run("keys")
		if j.end(refused) == nil {
			j.Fatalf("the Job has succeeded, want that it fails %s", what)
		}
		return strings.Contains(refused.Output(), want) && strings.Contains(refused.Output(), "is forbidden: User ")
	})
}

// makeCertificate makes the certificate as the Job did at another time.
func (j keysJob) makeCertificate(then time.Time) {
	j.Helper()
	secrets := kubernetes.NewForConfigOrDie(plane.Config()).CoreV1().Secrets(j.namespace)
	err := keys.Make(j.Context(), keys.Options{
		Secrets: secrets, Updates: secrets, TLSNamespace: j.namespace, Now: func() time.Time { return then }, Random: rand.Reader,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		j.Fatal(err)
	}
}

// secrets returns the versions of the Secrets in the namespace, by their names.
func (j keysJob) secrets() map[string]string {
	j.Helper()
	list, err := j.client.CoreV1().Secrets(j.namespace).List(j.Context(), metav1.ListOptions{})
	if err != nil {
		j.Fatal(err)
	}
	versions := map[string]string{}
	for _, secret := range list.Items {
		versions[secret.Name] = secret.ResourceVersion
	}
	return versions
}
