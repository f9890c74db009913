package install

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/rights"
	"github.com/keyturn/keyturn/tests/testkit"
)

// TestOnePodAndTwoTakeTurns installs deploy/single, goes to deploy/base and back, as docs/how-to/install.md says.
func TestOnePodAndTwoTakeTurns(t *testing.T) {
	r := newRelease(t)
	t.Cleanup(r.removeRolesOfOnePod)
	r.prepare()
	r.apply()
	r.volume()
	c := newCommands(r, "../../docs/how-to/install.md")
	begin := r.auditEnd()
	var one *programs.Program
	r.part("one pod is installed, makes its keys and is confined", func() {
		c.run("kubectl apply -k deploy/single")
		one = r.runTheOnePod()
		r.isConfined()
	})
	r.part("a changed Secret rolls what reads it", func() {
		r.rollsReaders("two")
	})
	key := r.kubelet.secret("keyturn-fingerprint-key")["keys"]
	r.part("two pods go on with the same key, and roll only what changes then", func() {
		before := r.revisions()
		c.run("kubectl apply -k deploy/base")
		one.StopIn(t, testkit.Patience)
		c.run("kubectl -n keyturn-system delete")
		r.runTwoPods()
		if now := r.kubelet.secret("keyturn-fingerprint-key")["keys"]; string(now) != string(key) {
			t.Error("the fingerprint key is another one")
		}
		r.rollsAPI("two")
		r.untouched(before, readers...)
	})
	r.part("one pod finds what changed while neither ran, and rolls nothing else", func() {
		r.stop()
		before := r.revisions()
		r.secret("db", "three")
		c.run("kubectl apply -k deploy/single")
		c.run("kubectl -n keyturn-system delete")
		one = r.runTheOnePod()
		r.rolled(before, readers...)
		r.untouched(before, "api")
	})
	r.part("its account asks for what its role has, and uses all of it", func() { r.usesTheRoleOf(rights.SingleAccount, begin) })
	r.part("it may create no Secrets but its keys", r.createsNoOtherSecret)
	r.part("two pods find what changed while neither ran", func() {
		one.StopIn(t, testkit.Patience)
		before := r.revisions()
		r.configMap("app", "three")
		c.shell("kubectl apply -k deploy/base")
		r.runTwoPods()
		r.rolled(before, "api")
		r.untouched(before, readers...)
	})
}

// runTheOnePod runs what the pod of deploy/single runs.
func (r *release) runTheOnePod() *programs.Program {
	r.Helper()
	r.kubelet.awaitPods(inOne)
	return r.kubelet.runReady(inOne)
}

// runTwoPods runs what the pods of deploy/base run.
func (r *release) runTwoPods() {
	r.Helper()
	r.kubelet.awaitPods("keys", "actuator", "watcher")
	r.start()
}

// asTheOnePod returns a client with the account of deploy/single.
func (r *release) asTheOnePod() kubernetes.Interface {
	r.Helper()
	config, err := plane.ServiceAccountConfig(r.Context(), programs.SystemNamespace, rights.SingleAccount)
	testkit.Must(r, err)
	return kubernetes.NewForConfigOrDie(config)
}

// isConfined waits until the API server refuses the account what the admission policy of the actuator does not let it do.
func (r *release) isConfined() {
	r.Helper()
	testkit.Must(r, programs.AwaitPolicy(r.Context(), r.asTheOnePod(), programs.SystemNamespace))
}

// createsNoOtherSecret tries a Secret for the token of another account, and one from which a program takes its settings.
func (r *release) createsNoOtherSecret() {
	r.Helper()
	secrets := r.asTheOnePod().CoreV1().Secrets(programs.SystemNamespace)
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "keyturn-nats-other", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	settings := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keyturn-watcher-env"}}
	for _, secret := range []*corev1.Secret{token, settings} {
		testkit.Await(r.T, "the Secret "+secret.Name+" is refused", func(ctx context.Context) bool {
			_, err := secrets.Create(ctx, secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err != nil && strings.Contains(err.Error(), "keyturn-system-keys")
		})
	}
}

// removeRolesOfOnePod removes what of deploy/single is in no namespace, and not of deploy/base, too.
func (r *release) removeRolesOfOnePod() {
	ctx, rbac := context.WithoutCancel(r.Context()), r.kube.RbacV1()
	for _, err := range []error{
		rbac.ClusterRoles().Delete(ctx, rights.SingleAccount, metav1.DeleteOptions{}),
		rbac.ClusterRoleBindings().Delete(ctx, rights.SingleAccount, metav1.DeleteOptions{}),
	} {
		if err != nil && !apierrors.IsNotFound(err) {
			r.Error(err)
		}
	}
}
