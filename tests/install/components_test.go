package install

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/traces"
)

// componentsOverlay is deploy/base in a namespace of the test, with components that another program talks to, or is talked to by. The
// bindings that are not in a namespace have a name of their own, for other tests have the ones of deploy/base.
const componentsOverlay = `
resources: [../deploy/base]
components: [COMPONENTS]
namespace: SERVED
configMapGenerator:
  - name: keyturn
    namespace: keyturn-system
    behavior: merge
    literals:
      - KEYTURN_CLUSTER=prod-eu
      - KEYTURN_NAMESPACES=SERVED
      - KEYTURN_NATS_URL=nats://keyturn-nats.SERVED.svc:4222
      - OTEL_BSP_SCHEDULE_DELAY=100
patches:
  - target: {kind: Job}
    patch: |
      - {op: replace, path: /spec/template/spec/containers/0/args/0, value: --namespace=SERVED}
  - target: {kind: ClusterRoleBinding, name: keyturn-watcher}
    options: {allowNameChange: true}
    patch: |
      - {op: replace, path: /metadata/name, value: SERVED-watcher}
  - target: {kind: ClusterRoleBinding, name: keyturn-actuator}
    options: {allowNameChange: true}
    patch: |
      - {op: replace, path: /metadata/name, value: SERVED-actuator}
`

// components is Keyturn with components, in a namespace.
type components struct {
	*kubelet
	policies []networkingv1.NetworkPolicy
	// audit is the host and port of the receiver on this machine.
	audit string
}

func TestTheComponentsReceiveTheAuditOfAStoreAndSendTraces(t *testing.T) {
	t.Parallel()
	received := traces.Receive(t)
	c := newComponents(t, "", []string{"keys", "audit", "actuator"}, "openbao-audit", "otlp")
	files, err := testbed.NewCertificates(t.TempDir())
	testkit.Must(t, err)
	store := httptest.NewServer(http.HandlerFunc(answerAsStore))
	t.Cleanup(store.Close)
	mounted := filepath.Join(c.dir, "secret-keyturn-openbao")
	c.openBao(map[string][]byte{
		"stores.yaml": fmt.Appendf(nil, "stores: [{name: bao, address: %q, auth: {token: a}}]\n"+
			"audit: {tokenFile: %[2]s/token, tlsCertFile: %[2]s/tls.crt, tlsKeyFile: %[2]s/tls.key}\n", store.URL, mounted),
		"token":   []byte(auditToken + "\n"),
		"tls.crt": []byte(testkit.ReadFile(t, files.Cert)), "tls.key": []byte(testkit.ReadFile(t, files.Key)),
	})
	c.await(c.run("keys"))
	c.receives("keyturn-audit", "openbao")
	c.sends(received, "audit", "actuator")
	c.runReady("actuator")
	c.runReady("audit")

	line, authorities := auditLine(), []byte(testkit.ReadFile(t, files.CA))
	for _, sent := range []struct {
		name, token string
		want        int
	}{
		{"no token", "", http.StatusUnauthorized},
		{"another token", auditToken + "-of-another", http.StatusUnauthorized},
		{"the token that is mounted", auditToken, http.StatusNoContent},
	} {
		if got := c.post(authorities, sent.token, line); got != sent.want {
			t.Errorf("a line with %s: got status %d, want %d", sent.name, got, sent.want)
		}
	}
	c.awaitRotated(events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"})
	c.awaitTrace(received, "openbao://bao/secret/shop/db")
}

// newComponents applies components, with more in the overlay, and waits for the pods of programs.
func newComponents(t *testing.T, more string, programs []string, names ...string) *components {
	t.Helper()
	c := &components{kubelet: newKubelet(t, plane.Namespace(t))}
	t.Cleanup(c.remove)
	for i, name := range names {
		names[i] = "../deploy/components/" + name
	}
	applyOverlay(t, c.namespace, strings.Replace(componentsOverlay, "COMPONENTS", strings.Join(names, ", "), 1)+more)
	list, err := c.client.NetworkingV1().NetworkPolicies(c.namespace).List(t.Context(), metav1.ListOptions{})
	testkit.Must(t, err)
	c.policies = list.Items
	for _, program := range programs {
		testkit.Await(t, "there is a pod of the "+program, func(context.Context) bool { return len(c.pods(program)) > 0 })
	}
	return c
}

// remove deletes the cluster-wide objects, and the namespace too, because it has a claim that other tests do not expect.
func (c *components) remove() {
	ctx := context.WithoutCancel(c.Context())
	for _, name := range []string{c.namespace + "-watcher", c.namespace + "-actuator"} {
		if err := c.client.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			c.Error(err)
		}
	}
	if err := c.client.CoreV1().Namespaces().Delete(ctx, c.namespace, metav1.DeleteOptions{}); err != nil {
		c.Error(err)
	}
}

// awaitRotated waits for the event of a write on the stream.
func (c *components) awaitRotated(path events.StorePath) {
	c.Helper()
	connection, err := bus.Connect(c.Context(), bus.ConnectOptions{
		URL: "nats://" + c.nats, CredsFile: filepath.Join(c.dir, "secret-keyturn-nats-actuator", "actuator.nk"),
		CAFile: filepath.Join(c.dir, "items-of-keyturn-nats-tls", "ca.crt"), Cluster: "prod-eu", Role: "actuator",
	})
	testkit.Must(c, err)
	defer connection.Close()
	reader, err := bus.OpenFleet(c.Context(), connection, events.StreamChanges)
	testkit.Must(c, err)
	testkit.Await(c.T, "the write is on the stream", func(ctx context.Context) bool {
		last, err := reader.Last(ctx, events.Subject("prod-eu", path.Source()))
		if err != nil {
			return false
		}
		change, err := last.Change()
		if err != nil || change.Verb != events.VerbRotated || change.Store.Version != 1 {
			c.Fatalf("the event of %s: got %s, %+v, %v, want that version 1 was written", path.Full(), change.Verb, change.Store, err)
		}
		return true
	})
}

// awaitTrace waits for the one trace of a change, with spans of both programs that name the cluster.
func (c *components) awaitTrace(received *traces.Receiver, subject string) {
	c.Helper()
	var found []testbed.Trace
	by := map[string]bool{}
	testkit.Await(c.T, "both programs have sent spans about the write", func(ctx context.Context) bool {
		found, _ = received.Traces(ctx, "keyturn-watcher", map[string]string{"cloudevents.event_subject": subject})
		clear(by)
		for _, trace := range found {
			for _, span := range trace.Spans {
				by[span.Service] = true
			}
		}
		return by["keyturn-watcher"] && by["keyturn-actuator"]
	}, func() string { return fmt.Sprintf("spans are of %v", by) })
	if len(found) != 1 {
		c.Errorf("traces of %s: got %d, want one", subject, len(found))
	}
	for _, span := range found[0].Spans {
		if got := span.Resource["k8s.cluster.name"]; got != "prod-eu" {
			c.Errorf("cluster of the span %q of %s: got %q, want prod-eu", span.Operation, span.Service, got)
		}
	}
}
