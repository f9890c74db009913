package tests

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testbed/secretstore"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/manifests"
)

// way is how the watcher learns about changes in a store.
type way string

const (
	byHTTP way = "http"
	byPoll way = "poll"
	// byReference polls what ExternalSecrets read, and nothing else.
	byReference way = "reference"
)

// storeRig is a rig with a secret store, the External Secrets Operator, and a SecretStore that connects them.
type storeRig struct {
	*rig
	store *secretstore.Store
	// listen is the address of the receiver of the audit, empty with byPoll.
	listen string
	way    way
	custom dynamic.Interface
	// dir is the folder of the logs and of the embedded NATS. It has no credential of the store.
	dir string
	// config is the path of the watcher's configuration of stores, and tokens that of the token that the audit device sends.
	config, tokens string
	// bus is what events reads. It connects on first use.
	bus *bus.Bus
}

// auditToken authenticates the store's HTTP audit device, or the log shipper, to the watcher.
const auditToken = "a-token-of-the-audit-device"

// secretStoreRights are the permissions in addition to those of deploy/base.
var secretStoreRights = []string{"../deploy/components/secret-stores/watcher.yaml", "../deploy/components/secret-stores/actuator.yaml"}

// newStoreRig prepares everything but starts neither program. With byPoll the store is polled every second. Otherwise it is
// polled once an hour, so that only the audit can report a rotation.
func newStoreRig(t *testing.T, w way, options programs.Options) *storeRig {
	t.Helper()
	startOperator(t)
	options.Dir = t.TempDir()
	credentials := t.TempDir()
	s := &storeRig{
		way: w, custom: dynamic.NewForConfigOrDie(plane.Config()), dir: options.Dir,
		config: filepath.Join(credentials, "stores.yaml"), tokens: filepath.Join(credentials, "audit-token"),
	}
	storeOptions := secretstore.Options{Log: os.Stderr}
	storeToken := filepath.Join(credentials, "store-token")
	options.WatcherArgs = append(options.WatcherArgs, "--sources", "secret,configmap,externalsecret", "--openbao-config", s.config)
	if w == byHTTP {
		port, err := process.FreePort()
		testkit.Must(t, err)
		s.listen = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		options.WatcherArgs = append(options.WatcherArgs, "--openbao-audit-listen", s.listen)
		if secretstore.OpenBao() {
			storeOptions.AuditURL, storeOptions.AuditToken = s.receiver(), auditToken
		}
	}
	options.ActuatorArgs = append([]string{"--settle", "50ms", "--force-sync"}, options.ActuatorArgs...)
	s.rig = newRig(t, options)
	testkit.Must(t, plane.ApplyKinds(t.Context(), testbed.RBACKinds(), secretStoreRights...))
	s.store = secretstore.Run(t, storeOptions)
	t.Cleanup(s.leave)
	if err := s.store.AuditToFile(t.Context()); err != nil && !secretstore.OpenBao() {
		t.Fatal(err)
	}
	s.write(s.tokens, auditToken+"\n")
	s.write(storeToken, s.store.Token()+"\n")
	interval, polled := "1h", "mounts: [secret]"
	switch w {
	case byReference:
		interval, polled = "1s", "referenced: true"
	case byPoll:
		interval = "1s"
	}
	s.write(s.config, fmt.Sprintf(`stores:
- name: bao
  address: %s
  auth: {tokenFile: %s}
  poll: {interval: %s, %s}
audit: {tokenFile: %s}
`, s.store.Address(), storeToken, interval, polled, s.tokens))
	s.applyStore()
	return s
}

// applyStore makes the SecretStore through which External Secrets reads the store.
func (s *storeRig) applyStore() {
	s.Helper()
	s.apply(manifests.SecretStore{Namespace: s.namespace, Name: "bao", Address: s.store.Address(), Token: s.store.Token()}.YAML())
	// External Secrets retries a store that is not ready only after a while, and so what reads it.
	s.eventually("the SecretStore is ready", func(ctx context.Context) bool {
		store, err := s.custom.Resource(secretStores).Namespace(s.namespace).Get(ctx, "bao", metav1.GetOptions{})
		return err == nil && conditionOf(store, "Ready") == "True"
	})
}

// leave removes what the operator would sync in vain, one after the other, once the store is gone, while other tests
// wait for it.
func (s *storeRig) leave() {
	s.Helper()
	for _, resource := range []schema.GroupVersionResource{externalSecrets, secretStores} {
		err := s.custom.Resource(resource).Namespace(s.namespace).
			DeleteCollection(context.WithoutCancel(s.Context()), metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			s.Error(err)
		}
	}
}

func (s *storeRig) write(path, content string) {
	s.Helper()
	testkit.Must(s, os.WriteFile(path, []byte(content), 0o600))
}

// apply applies manifests, with placeholders for what the test does not know beforehand.
func (s *storeRig) apply(manifests string) {
	s.Helper()
	values := strings.NewReplacer("NAMESPACE", s.namespace, "TOKEN", s.store.Token(), "ADDRESS", s.store.Address())
	testkit.Must(s, plane.ApplyYAML(s.Context(), strings.NewReader(values.Replace(manifests))))
}

// start starts both programs and connects the store's audit to the watcher.
func (s *storeRig) start() {
	s.Helper()
	s.rig.start()
	s.feed()
}

// receiver is the URL to which the store's audit log is posted.
func (s *storeRig) receiver() string { return "http://" + s.listen + "/v1/audit/bao" }

// feed connects the store's audit log to the watcher. OpenBao is configured to post it. Vault cannot, so the lines of its audit file are shipped.
func (s *storeRig) feed() {
	s.Helper()
	if s.way != byHTTP || secretstore.OpenBao() {
		return
	}
	stop, err := s.store.ShipAudit(s.Context(), s.receiver(), auditToken)
	testkit.Must(s, err)
	s.Cleanup(func() {
		if err := stop(); err != nil {
			s.Error(err)
		}
	})
}

// put writes a secret and returns its version.
func (s *storeRig) put(path, value string) int {
	s.Helper()
	written, err := s.store.Client().KVv2("secret").Put(s.Context(), path, map[string]any{"password": value})
	testkit.Must(s, err)
	return written.VersionMetadata.Version
}

// externalSecret creates an ExternalSecret that reads a path and refreshes once an hour, and waits for its Secret.
func (s *storeRig) externalSecret(name, path string) {
	s.Helper()
	s.apply(manifests.ExternalSecret{Namespace: s.namespace, Name: name, Store: "bao", Path: path}.YAML())
	s.eventually("the Secret "+name+" is there", func(ctx context.Context) bool {
		_, err := s.client.CoreV1().Secrets(s.namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil
	})
}

var (
	externalSecrets = schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: "externalsecrets"}
	secretStores    = schema.GroupVersionResource{Group: "external-secrets.io", Version: "v1", Resource: "secretstores"}
)

// conditionOf returns the status of a condition, or "".
func conditionOf(object *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok && fields["type"] == kind {
			return fmt.Sprint(fields["status"])
		}
	}
	return ""
}

// reader deploys pods that read a Secret.
func (s *storeRig) reader(name, secret string) {
	s.Helper()
	web := programs.NewDeployment(s.namespace, name, 1, map[string]string{"keyturn.dev/roll-on": "auto"})
	programs.ReadSecret(&web.Spec.Template, secret)
	s.deploy(web)
}

// awaitContent waits until a Secret has a value.
func (s *storeRig) awaitContent(secret, value string) time.Time {
	s.Helper()
	s.eventually("the Secret "+secret+" has the new value", func(ctx context.Context) bool {
		got, err := s.client.CoreV1().Secrets(s.namespace).Get(ctx, secret, metav1.GetOptions{})
		return err == nil && string(got.Data["password"]) == value
	})
	return time.Now()
}

// awaitGeneration waits until the pod template of a Deployment was written so often, its creation included, and its pods are the new ones. Its
// generation says less: the API server counts records, too.
func (s *storeRig) awaitGeneration(name string, generation int64) {
	s.Helper()
	s.eventually(fmt.Sprintf("the template of %s was written %d times, and it has new pods", name, generation), func(context.Context) bool {
		return s.seen().deployments()[name] >= generation && complete(s.deployment(name))
	})
	if got := s.generations()[name]; got != generation {
		s.Errorf("the template of %s was written %d times, want %d", name, got, generation)
	}
}

// complete reports whether all pods of a Deployment have its current template and are ready.
func complete(d *appsv1.Deployment) bool {
	want := *d.Spec.Replicas
	return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == want && d.Status.Replicas == want &&
		d.Status.AvailableReplicas == want
}
