package install

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/testkit"
)

// certManagerOverlay is deploy/namespaced with a certificate of cert-manager, with all of it in the namespace that is served. Its policy would
// be that of other tests, which are for another account.
const certManagerOverlay = `
resources: [../deploy/namespaced]
components: [../deploy/components/cert-manager, ../deploy/components/without-admission-policy]
namespace: SERVED
transformers: [../deploy/namespace]
configMapGenerator:
  - name: keyturn
    namespace: keyturn-system
    behavior: merge
    literals: [KEYTURN_NAMESPACES=SERVED, "KEYTURN_NATS_URL=nats://keyturn-nats.SERVED.svc:4222"]
patches:
` + servedAlone

func TestCertManagerIssuesAndRenewsTheCertificateOfNATS(t *testing.T) {
	t.Parallel()
	manager, err := plane.StartCertManager(t.Context())
	testkit.Must(t, err)
	manager.StopAfter(t)
	w := workloads{t, kubernetes.NewForConfigOrDie(plane.Config()), plane.Namespace(t)}
	k := newKubelet(t, w.namespace)
	t.Cleanup(func() { // Its claim is one that other tests do not expect.
		if err := k.client.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), k.namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	applyOverlay(t, w.namespace, certManagerOverlay)
	w.prepare()
	w.apply()
	k.awaitPods("keys", "watcher", "actuator")
	k.await(k.run("keys"))
	if _, err := k.client.CoreV1().Secrets(k.namespace).Get(t.Context(), "keyturn-nats-ca", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the CA of the job: got %v, want that it has made none", err)
	}
	k.awaitCertificate()
	k.runReady("actuator")
	watcher, first := k.runReady("watcher"), k.mounted()
	w.rollsReaders("two")
	k.awaitAnswer("deployment/web", "history", "--all-namespaces")

	k.renewCertificate(first)
	if got := k.presented("watcher"); got != first {
		t.Errorf("before the volume has it: got the certificate %s, want %s", got, first)
	}
	k.remount("actuator")
	second := k.mounted()
	testkit.Await(t, "the server presents the renewed certificate", func(context.Context) bool {
		return second != first && k.presented("watcher") == second
	})
	if strings.Contains(watcher.Output(), "nats disconnected") {
		t.Error("the watcher was disconnected")
	}
	w.rollsReaders("three")
}

// awaitCertificate waits until there is a certificate of NATS.
func (k *kubelet) awaitCertificate() {
	k.Helper()
	testkit.Await(k.T, "there is a certificate of NATS", func(ctx context.Context) bool { return k.certificate(ctx) != "" })
}

// renewCertificate deletes the certificate of NATS until there is another one. While cert-manager is not done with the first one, or does not know
// yet that it is, it writes the same one again.
func (k *kubelet) renewCertificate(first string) {
	k.Helper()
	testkit.Await(k.T, "there is another certificate of NATS", func(ctx context.Context) bool {
		serial := k.certificate(ctx)
		if serial == first {
			if err := k.client.CoreV1().Secrets(k.namespace).Delete(ctx, "keyturn-nats-tls", metav1.DeleteOptions{}); err != nil {
				k.Log(err)
			}
		}
		return serial != "" && serial != first
	})
}

// certificate returns the serial number of the certificate of NATS, or "" if there is none.
func (k *kubelet) certificate(ctx context.Context) string {
	secret, err := k.client.CoreV1().Secrets(k.namespace).Get(ctx, "keyturn-nats-tls", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil || len(secret.Data["ca.crt"]) == 0 {
		return ""
	}
	return fmt.Sprint(pair.Leaf.SerialNumber)
}

// remount brings what Secrets and ConfigMaps have now to the volumes of a program's pod, as the kubelet does within minutes.
func (k *kubelet) remount(program string) {
	k.Helper()
	pod := k.pod(program)
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		k.rewriter(pod, container)
	}
}

// mounted returns the serial number of the certificate in the volume of NATS. The Secret may have another one by now: cert-manager, which reads from
// a cache, sometimes issues a certificate twice.
func (k *kubelet) mounted() string {
	k.Helper()
	folder := filepath.Join(k.dir, "secret-keyturn-nats-tls")
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	testkit.Must(k, err)
	return fmt.Sprint(pair.Leaf.SerialNumber)
}

// presented connects to NATS as a program does, and returns the serial number of the certificate that the server presents.
func (k *kubelet) presented(program string) string {
	k.Helper()
	credentials, err := nats.NkeyOptionFromSeed(filepath.Join(k.dir, "secret-keyturn-nats-"+program, program+".nk"))
	testkit.Must(k, err)
	connection, err := nats.Connect(k.nats, credentials, nats.Timeout(testkit.Patience), nats.Secure(&tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, //nolint:gosec // what it presents is looked at, trusted or not
		VerifyConnection: func(state tls.ConnectionState) error {
			return k.isFor(state.PeerCertificates[0])
		},
	}))
	testkit.Must(k, err)
	defer connection.Close()
	state, err := connection.TLSConnectionState()
	testkit.Must(k, err)
	return fmt.Sprint(state.PeerCertificates[0].SerialNumber)
}

// isFor returns an error unless a certificate is for the Service of NATS.
func (k *kubelet) isFor(certificate *x509.Certificate) error {
	return certificate.VerifyHostname("keyturn-nats." + k.namespace + ".svc")
}
