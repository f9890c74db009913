package tests

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

// keysRig runs `keyturn keys` as the job does, with the permissions of deploy/keys alone.
type keysRig struct {
	*testing.T
	namespace, kubeconfig, dir string
	secrets                    typedcorev1.SecretInterface
}

func newKeysRig(t *testing.T) *keysRig {
	t.Helper()
	r := &keysRig{T: t, namespace: plane.Namespace(t), dir: t.TempDir()}
	r.secrets = kubernetes.NewForConfigOrDie(plane.Config()).CoreV1().Secrets(r.namespace)
	manifest, err := os.ReadFile("../deploy/keys/rbac.yaml")
	testkit.Must(t, err)
	testkit.Must(t, plane.ApplyYAML(t.Context(), strings.NewReader(strings.ReplaceAll(string(manifest), programs.SystemNamespace, r.namespace))))
	if r.kubeconfig, err = plane.ServiceAccountKubeconfig(t.Context(), r.namespace, "keyturn-keys"); err != nil {
		t.Fatal(err)
	}
	job := kubernetes.NewForConfigOrDie(configOf(t, r.namespace, "keyturn-keys"))
	testkit.Await(t, "the job has its rights", func(context.Context) bool { return may(t, job, r.namespace, "create secrets") })
	return r
}

// confine applies the admission policy for the account of this rig.
func (r *keysRig) confine() {
	r.Helper()
	policy, err := os.ReadFile("../deploy/admission/keys.yaml")
	testkit.Must(r, err)
	testkit.Must(r, plane.ApplyYAML(r.Context(), strings.NewReader(strings.ReplaceAll(string(policy), programs.SystemNamespace, r.namespace))))
	own := []string{r.namespace + "-keys"}
	r.Cleanup(func() { removePolicies(r, own, own) })
}

// refused reports whether an error is a refusal of the policy.
func (r *keysRig) refused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+r.namespace+"-keys'")
}

// run runs the command and returns its output, and how it ended.
func (r *keysRig) run(name string) (string, error) {
	r.Helper()
	p, err := process.Start(process.Options{
		Path: binaries.Keyturn, Name: name, LogFile: filepath.Join(r.dir, name+".log"), Env: []string{"GORACE=atexit_sleep_ms=0"},
		Args: []string{
			"keys", "--namespace", r.namespace, "--kubeconfig", r.kubeconfig, "--nats-tls", "--nats-routes", "--audit", "--projector",
		},
	})
	testkit.Must(r, err)
	defer p.Kill()
	testkit.Receive(r.T, "the end of "+name, p.Done(), p.Output)
	return p.Output(), p.Wait()
}

func (r *keysRig) get(name string) *corev1.Secret {
	r.Helper()
	secret, err := r.secrets.Get(r.Context(), name, metav1.GetOptions{})
	testkit.Must(r, err)
	return secret
}

// trusted checks that a client with ca.crt trusts the server.
func (r *keysRig) trusted() {
	r.Helper()
	server, roots := r.get("keyturn-nats-tls"), x509.NewCertPool()
	roots.AppendCertsFromPEM(server.Data["ca.crt"])
	pair, err := tls.X509KeyPair(server.Data["tls.crt"], server.Data["tls.key"])
	if err == nil {
		_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: "keyturn-nats." + r.namespace + ".svc", Roots: roots})
	}
	if err != nil {
		r.Error(err)
	}
}

// While a name that the job may read is free, its token could have the API server put the token of another account there.
func TestTheJobOfTheKeysGetsNoTokenOfAnotherAccount(t *testing.T) {
	t.Parallel()
	r := newKeysRig(t)
	kube := kubernetes.NewForConfigOrDie(plane.Config())
	watcher := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "keyturn-watcher"}}
	if _, err := kube.CoreV1().ServiceAccounts(r.namespace).Create(t.Context(), watcher, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := configOf(t, r.namespace, "keyturn-keys")
	secrets := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets(r.namespace)
	attack := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "keyturn-nats-tls", Annotations: map[string]string{corev1.ServiceAccountNameKey: watcher.Name}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	if _, err := secrets.Create(t.Context(), attack, metav1.CreateOptions{}); err != nil {
		t.Fatalf("without the policy: got %v, want that it is created", err)
	}
	testkit.Await(t, "without the policy the job reads the token of another account", func(ctx context.Context) bool {
		filled, err := secrets.Get(ctx, attack.Name, metav1.GetOptions{})
		return err == nil && len(filled.Data[corev1.ServiceAccountTokenKey]) > 0
	})
	testkit.Must(t, r.secrets.Delete(t.Context(), attack.Name, metav1.DeleteOptions{}))

	r.confine()
	testkit.Await(t, "the policy refuses it", func(ctx context.Context) bool {
		_, err := secrets.Create(ctx, attack, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return r.refused(err)
	})
	for _, kind := range []corev1.SecretType{corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken, "example.org/other"} {
		attack.Type = kind
		for _, name := range []string{"keyturn-nats-ca", "keyturn-nats-tls", "other"} {
			attack.Name = name
			if _, err := secrets.Create(t.Context(), attack, metav1.CreateOptions{}); !r.refused(err) {
				t.Errorf("a Secret %s of the type %s: got %v, want that the policy refuses it", name, kind, err)
			}
		}
	}
	attack.Type, attack.Annotations = corev1.SecretTypeOpaque, nil
	for _, name := range []string{
		"keyturn-watcher-env", "keyturn-actuator-env", "keyturn-nats-env", "keyturn-nats", "keyturn-nats-leaf", "keyturn-nats-issuer", "keyturn-nats-other",
		"other",
	} {
		attack.Name = name
		if _, err := secrets.Create(t.Context(), attack, metav1.CreateOptions{}); !r.refused(err) {
			t.Errorf("a Secret %s, which is none of the keys: got %v, want that the policy refuses it", name, err)
		}
	}
	if output, err := r.run("confined"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	r.trusted()
	cut := r.get("keyturn-nats-tls")
	cut.Data["ca.crt"] = nil
	if _, err := r.secrets.Update(t.Context(), cut, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if output, err := r.run("repair"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	r.trusted()
}

// A right that somebody has added does not extend what the job may change.
func TestTheJobOfTheKeysChangesNoOtherSecret(t *testing.T) {
	t.Parallel()
	r := newKeysRig(t)
	if output, err := r.run("install"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	roles := kubernetes.NewForConfigOrDie(plane.Config()).RbacV1().Roles(r.namespace)
	role, err := roles.Get(t.Context(), "keyturn-keys", metav1.GetOptions{})
	testkit.Must(t, err)
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "update"}})
	if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := configOf(t, r.namespace, "keyturn-keys")
	secrets := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets(r.namespace)
	update := func(ctx context.Context, name string) error {
		_, err := secrets.Update(ctx, r.get(name), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	testkit.Await(t, "without the policy it may", func(ctx context.Context) bool { return update(ctx, "keyturn-fingerprint-key") == nil })
	r.confine()
	testkit.Await(t, "the policy refuses it", func(ctx context.Context) bool { return r.refused(update(ctx, "keyturn-fingerprint-key")) })
	for _, name := range []string{"keyturn-nats-ca", "keyturn-nats-tls"} {
		if err := update(t.Context(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheJobOfTheKeysReadsNoOtherSecret(t *testing.T) {
	t.Parallel()
	r := newKeysRig(t)
	config := configOf(t, r.namespace, "keyturn-keys")
	if output, err := r.run("install"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	secrets := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets(r.namespace)
	for _, name := range []string{"keyturn-fingerprint-key", "keyturn-nats-watcher", "keyturn-nats-actuator"} {
		if _, err := secrets.Get(t.Context(), name, metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("reading %s: got %v, want it forbidden", name, err)
		}
	}
	if _, err := secrets.List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("listing: got %v, want it forbidden", err)
	}
	if err := secrets.Delete(t.Context(), "keyturn-nats-ca", metav1.DeleteOptions{}); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("deleting: got %v, want it forbidden", err)
	}
}
