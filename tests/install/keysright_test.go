package install

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/tests/rights"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// installationKeys are the Secrets that the Job makes.
var installationKeys = append(
	[]string{
		"keyturn-fingerprint-key", "keyturn-nats-storage", "keyturn-nats-watcher", "keyturn-nats-actuator", "keyturn-nats-reader",
	}, secretsOfNATS...)

// secretsOfNATS are the only ones that the Job may read and change.
var secretsOfNATS = []string{"keyturn-nats-ca", "keyturn-nats-tls"}

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

func TestEachRightOfTheJobOfTheKeysIsUsed(t *testing.T) {
	t.Parallel()
	j := newKeysJob(t)
	j.makeCertificate(time.Now().AddDate(-8, 0, 0)) // Of three years, by a CA of ten: both must be renewed.
	before := j.secrets()
	begin, err := plane.AuditEnd()
	testkit.Must(t, err)
	given := rights.GrantsOf(t, "keys/rbac.yaml")
	j.grant(given[0].Rules)
	testkit.Await(t, "the Job succeeds", func(context.Context) bool { return j.end(j.run("keys")) == nil })
	for _, name := range installationKeys {
		if len(j.secret(name)) == 0 {
			t.Errorf("the Secret %s is empty", name)
		}
	}
	for _, name := range secretsOfNATS {
		if after := j.secrets()[name]; after == before[name] {
			t.Errorf("the Secret %s was not renewed", name)
		}
	}
	j.uses(begin, rights.PermissionsOf(given))
}

// keysJob is the Job in a namespace of its own.
type keysJob struct {
	*kubelet
}

func newKeysJob(t *testing.T) keysJob {
	t.Helper()
	j := keysJob{newKubelet(t, plane.Namespace(t))}
	applyOverlay(t, j.namespace, keysOverlay)
	j.awaitPods("keys")
	return j
}

// uses waits until the Job was seen to use each of its permissions since an offset of the audit log.
func (j keysJob) uses(begin int64, permissions []rights.Permission) {
	j.Helper()
	user, left := testbed.ServiceAccountUser(j.namespace, rights.KeysAccount), permissions
	testkit.Await(j.T, "each right of the Job is used", func(context.Context) bool {
		entries, _, err := plane.AuditSince(begin)
		left = slices.DeleteFunc(slices.Clone(permissions), func(p rights.Permission) bool {
			return slices.ContainsFunc(entries, func(entry testbed.AuditEntry) bool { return p.IsUsedBy(entry, user, j.namespace) })
		})
		return err == nil && len(left) == 0
	}, func() string { return "rights that it has not used:\n" + rights.Tell(left) })
}

// grant replaces the rules of the Job's role, and waits until the API server follows them.
func (j keysJob) grant(rules []rbacv1.PolicyRule) {
	j.Helper()
	roles := j.client.RbacV1().Roles(j.namespace)
	role, err := roles.Get(j.Context(), rights.KeysAccount, metav1.GetOptions{})
	testkit.Must(j, err)
	role.Rules = rules
	if _, err := roles.Update(j.Context(), role, metav1.UpdateOptions{}); err != nil {
		j.Fatal(err)
	}
}

// makeCertificate makes the certificate as the Job did at another time.
func (j keysJob) makeCertificate(then time.Time) {
	j.Helper()
	secrets := kubernetes.NewForConfigOrDie(plane.Config()).CoreV1().Secrets(j.namespace)
	err := embedded.MakeKeys(j.Context(), embedded.KeyOptions{
		Secrets: secrets, Updates: secrets, TLSNamespace: j.namespace, Now: func() time.Time { return then }, Random: rand.Reader,
		Logger: slog.New(slog.DiscardHandler),
	})
	testkit.Must(j, err)
}

// secrets returns the versions of the Secrets in the namespace, by their names.
func (j keysJob) secrets() map[string]string {
	j.Helper()
	list, err := j.client.CoreV1().Secrets(j.namespace).List(j.Context(), metav1.ListOptions{})
	testkit.Must(j, err)
	versions := map[string]string{}
	for _, secret := range list.Items {
		versions[secret.Name] = secret.ResourceVersion
	}
	return versions
}
