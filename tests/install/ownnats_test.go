package install

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// ownNATSOverlay is deploy/namespaced with a NATS of the operator's, with all of it in the namespace that is served.
const ownNATSOverlay = `
resources: [../deploy/namespaced]
components: [../deploy/components/external-nats]
namespace: SERVED
configMapGenerator:
  - name: keyturn
    namespace: keyturn-system
    behavior: merge
    literals: [KEYTURN_NAMESPACES=SERVED, KEYTURN_LEASE_NAMESPACE=SERVED]
patches:
  - target: {kind: Job}
    patch: |
      - {op: replace, path: /spec/template/spec/containers/0/args/0, value: --namespace=SERVED}
` + servedAlone

func TestWithANATSOfItsOwnAnActuatorTakesOverFromAnother(t *testing.T) {
	t.Parallel()
	w := workloads{t, kubernetes.NewForConfigOrDie(plane.Config()), plane.Namespace(t)}
	k := newKubelet(t, w.namespace)
	applyOverlay(t, w.namespace, ownNATSOverlay)
	startNATS(t, k, "watcher", "actuator")
	w.prepare()
	w.apply()
	for program, count := range map[string]int{"keys": 1, "watcher": 1, "actuator": 2} {
		testkit.Await(t, fmt.Sprintf("there are %d pods of the %s", count, program), func(context.Context) bool { return len(k.pods(program)) == count })
	}

	k.await(k.run("keys"))
	var actuators []*programs.Program
	for _, pod := range k.pods("actuator") {
		actuators = append(actuators, k.ready(k.runPod(&pod, "actuator")))
	}
	k.runReady("watcher")
	before := w.revisions()
	w.secret("db", "two")
	w.rolled(before, readers...)
	// The leader is stopped and releases its Lease.
	leader, standby := actuators[0], actuators[1]
	if standby.Leads() {
		leader, standby = standby, leader
	}
	if !leader.Leads() || standby.Leads() {
		t.Fatal("it is not so that one of two actuators leads")
	}
	if err := leader.Stop(testkit.Patience); err != nil {
		t.Fatal(err)
	}
	before = w.revisions()
	w.secret("db", "three")
	w.rolled(before, readers...)
	if !standby.Leads() {
		t.Error("the other actuator does not lead")
	}
}

// startNATS runs a NATS server, with the streams, where the pods expect theirs, and puts a user's credentials for each program
// where they read them.
func startNATS(t *testing.T, k *kubelet, names ...string) {
	t.Helper()
	host, port, err := net.SplitHostPort(k.nats)
	if err != nil {
		t.Fatal(err)
	}
	options := natstest.Options{Host: host}
	if options.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	var file string
	for _, name := range names {
		dir := t.TempDir()
		options.Users = append(options.Users, testkit.NewNATSUser(t, dir, name))
		file = filepath.Join(dir, name+".nk")
		seed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keyturn-nats-" + name}, Data: map[string][]byte{name + ".nk": seed}}
		if _, err := k.client.CoreV1().Secrets(k.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	credentials, err := nats.NkeyOptionFromSeed(file)
	if err != nil {
		t.Fatal(err)
	}
	natstest.Start(t, options).Declare(credentials)
}
