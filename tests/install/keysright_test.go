package install

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// The account of the Job of deploy/keys, and its only permission.
const (
	keysAccount = "keyturn-keys"
	keysRight   = "create secrets"
)

// keysOverlay is deploy/keys without its right.
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

func TestWithoutItsRightTheJobOfTheKeysFailsAndMakesNone(t *testing.T) {
	t.Parallel()
	client := kubernetes.NewForConfigOrDie(plane.Config())
	k := newKubelet(t, plane.Namespace(t))
	applyOverlay(t, k.namespace, keysOverlay)
	testkit.Await(t, "there is a pod of the Job", func(context.Context) bool { return len(k.pods("keys")) == 1 })
	begin, err := plane.AuditEnd()
	if err != nil {
		t.Fatal(err)
	}

	user := testbed.ServiceAccountUser(k.namespace, keysAccount)
	refused := k.run("keys")
	if err := refused.Wait(); err == nil {
		t.Error("the Job has succeeded")
	}
	want := `error: creating secret keyturn-fingerprint-key: secrets is forbidden: User "` + user + `" cannot create resource "secrets"`
	if !strings.Contains(refused.Output(), want) {
		t.Errorf("the Job says: %s\nwant: %s", refused.Output(), want)
	}
	testkit.Await(t, "the API server has refused it", func(context.Context) bool {
		entries, _, err := plane.AuditSince(begin)
		return err == nil && slices.ContainsFunc(testbed.Requests(entries, user), func(entry testbed.AuditEntry) bool {
			return entry.Code == 403 && right(entry.Verb, entry.Group, entry.Resource) == keysRight
		})
	})
	secrets, err := client.CoreV1().Secrets(k.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(secrets.Items) > 0 {
		t.Fatalf("Secrets: got %d, %v, want none", len(secrets.Items), err)
	}

	roles := client.RbacV1().Roles(k.namespace)
	role, err := roles.Get(t.Context(), keysAccount, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = rulesOf(t, "keys/rbac.yaml")[keysAccount]
	if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "a further try of the Job succeeds", func(context.Context) bool { return k.run("keys").Wait() == nil })
	for _, name := range []string{"keyturn-fingerprint-key", "keyturn-nats-watcher", "keyturn-nats-actuator", "keyturn-nats-reader"} {
		if len(k.secret(name)) == 0 {
			t.Errorf("the Secret %s is empty", name)
		}
	}
}
