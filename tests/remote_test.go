package tests

import (
	"context"
	"maps"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/templates"
)

// newRemoteRig returns a rig for a second cluster. It runs only an API server: its Deployments have no pods.
func newRemoteRig(t *testing.T, options programs.Options) *rig {
	t.Helper()
	remote, err := testbed.Start(t.Context(), testbed.Options{
		Log: os.Stderr, WithoutControllers: true, WithoutNode: true,
	})
	testkit.Must(t, err)
	t.Cleanup(remote.Stop)
	r := &rig{T: t, client: kubernetes.NewForConfigOrDie(remote.Config()), namespace: remote.Namespace(t)}
	if r.templates, err = templates.Watch(t.Context(), r.client, r.namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.templates.Stop)
	options.Dir, options.RBAC, options.Binaries = t.TempDir(), "../deploy/base/rbac.yaml", binaries
	options.Env = append([]string{"GORACE=atexit_sleep_ms=0"}, options.Env...)
	options.ActuatorArgs = append([]string{"--settle", "50ms"}, options.ActuatorArgs...)
	if r.programs, err = programs.New(t.Context(), remote, options); err != nil {
		t.Fatal(err)
	}
	return r
}

// The remote cluster runs only a watcher, which uses the hub's NATS. Two actuators in the hub, one of them the leader, roll its
// workloads by a kubeconfig, beside the actuator of the hub's own cluster.
func TestAnActuatorInTheHubRollsWhatIsInARemoteCluster(t *testing.T) {
	t.Parallel()
	n := startOutsideNATS(t)
	hub := newRig(t, programs.Options{Cluster: "hub", NATSURL: n.URL(), ActuatorArgs: []string{"--settle", "50ms"}})
	remote := newRemoteRig(t, programs.Options{Cluster: "remote", NATSURL: n.URL()})
	hub.fleet(1, oneSecret)
	remote.fleet(3, oneSecret)
	hub.start()
	remote.startActuator()
	leader := remote.actuator
	remote.eventually("the first actuator of the remote cluster leads", func(context.Context) bool { return leader.Leads() })
	remote.startActuator()
	remote.startWatcher()

	inHub, inRemote := hub.generations(), remote.generations()
	remote.rotate(3, oneSecret)
	remote.eachRolledOnce(inRemote)
	if now := hub.generations(); !maps.Equal(now, inHub) {
		t.Errorf("generations in the hub: got %v, want %v as before", now, inHub)
	}
	lease, err := remote.client.CoordinationV1().Leases(programs.SystemNamespace).Get(t.Context(), "keyturn-actuator", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		t.Errorf("the Lease in the remote cluster: got %+v, %v, want a holder", lease, err)
	}

	remote.sub("the other takes over, and the hub's own cluster is rolled by its own", func(r *rig) {
		inRemote = r.generations()
		testkit.Must(r, leader.Stop(patience))
		r.secret("shared", map[string]string{"password": "a third one"})
		r.eachRolledOnce(inRemote)
		hub.secret("shared", map[string]string{"password": "a third one"})
		hub.eachRolledOnce(inHub)
	})
}
