package tests

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/kubelet"
)

// newInPlaceRig returns a rig, with a NATS outside of the programs, for an actuator that may list the pods that it asks to reload.
func newInPlaceRig(t *testing.T) *rig {
	t.Helper()
	testkit.Must(t, plane.ApplyKinds(t.Context(), testbed.RBACKinds(), "../deploy/components/reload-in-place/rbac.yaml"))
	r := newRig(t, programs.Options{NATSURL: startOutsideNATS(t).URL()})
	actuator := clientOf(t, actuatorAccount)
	r.eventually("the actuator may list pods", func(context.Context) bool { return may(t, actuator, r.namespace, "list pods") })
	return r
}

// toldAt is the annotation of a workload whose pods are processes of a kubelet.
var toldAt = map[string]string{"keyturn.dev/reload": "http://:9090" + kubelet.ReloadPath}

// mounting makes a Deployment that reads a Secret as files, and whose pods reload after its changes.
func (r *rig) mounting(name, secret string, replicas int32) *appsv1.Deployment {
	deployment := programs.NewDeployment(r.namespace, name, replicas, maps.Clone(toldAt))
	deployment.Annotations["keyturn.dev/roll-on"] = "auto"
	programs.MountSecret(&deployment.Spec.Template, secret)
	return deployment
}

// processes runs a process for each pod of a Deployment.
func (r *rig) processes(deployment, secret, key string) *kubelet.Kubelet {
	r.Helper()
	k := &kubelet.Kubelet{
		Client: r.client, Namespace: r.namespace, Selector: "app=" + deployment, Secret: secret, Key: key, Dir: r.TempDir(),
	}
	r.Cleanup(k.Stop)
	testkit.Must(r, k.Sync(r.Context()))
	return k
}

// serves reports whether all processes have a content, and how many there are.
func (r *rig) serves(k *kubelet.Kubelet, want string) (int, bool) {
	r.Helper()
	served, err := k.Served(r.Context())
	testkit.Must(r, err)
	return len(served), !slices.ContainsFunc(slices.Collect(maps.Values(served)), func(got string) bool { return got != want })
}

// shiftedClock is the time of an actuator, which a test may have go forward.
type shiftedClock struct{ ahead atomic.Int64 }

func (c *shiftedClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// pass has a time pass by the clock.
func (c *shiftedClock) pass(d time.Duration) { c.ahead.Add(int64(d)) }

// runAt runs an actuator with a clock, until the returned function is called. It has the account of the actuator, uses the NATS of the programs, and
// no leader election. No rollout times out there because the clock goes forward.
func (r *rig) runAt(clock *shiftedClock, set func(*actuate.Options)) (stop func()) {
	r.Helper()
	var log testkit.Log
	options := actuate.DefaultOptions()
	options.Cluster, options.Namespaces, options.LeaderElect = r.programs.Cluster(), []string{r.namespace}, false
	options.Settle, options.Client, options.Now = 50*time.Millisecond, clientOf(r.T, actuatorAccount), clock.now
	options.RolloutTimeout = 24 * time.Hour
	options.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	options.Tracer, options.Meter = tracenoop.NewTracerProvider().Tracer(""), noop.NewMeterProvider().Meter("")
	set(&options)
	actuator, err := actuate.New(options)
	testkit.Must(r, err)
	b := r.connect()
	stop = testkit.Run(r.T, "actuator", func(ctx context.Context) error { return actuator.Run(ctx, b) })
	r.Cleanup(func() {
		if r.Failed() {
			r.Logf("log of the actuator:\n%s", log.String())
		}
	})
	r.eventually("the actuator knows the workloads", func(context.Context) bool { return actuator.Ready() == nil })
	return stop
}

func TestPodsAreToldOfAChangeOnceTheirFilesAreNewAlsoByTheNextLeader(t *testing.T) {
	t.Parallel()
	r := newInPlaceRig(t)
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.mounting("web", "db", 3))
	r.deploy(r.reading("variable", "db", 1, toldAt))
	pods := r.processes("web", "db", "password")
	clock := &shiftedClock{}
	run := func() func() {
		return r.runAt(clock, func(o *actuate.Options) { o.ReloadInPlace, o.DialPod = 2*time.Minute, pods.Dial })
	}
	stop := run()
	r.startWatcher()
	r.awaitRecords()
	before := r.tally()
	r.set(events.KindSecret, "db", "password", "two")
	r.isHeld("web", "files-pending", "once the kubelets have had the time to refresh them: until ")
	instead := r.outcomeOf("variable", events.VerbStarted)
	if want := "; not in place: secret/db is read as environment"; !strings.HasSuffix(instead.Message, want) {
		t.Errorf("the one that reads it as environment is rolled with the message %q, want %q", instead.Message, want)
	}

	// What waits for its files waits on the stream.
	stop()
	testkit.Must(t, pods.Refresh(t.Context()))
	if n, all := r.serves(pods, "one"); n != 3 || !all {
		t.Fatalf("of %d processes not all have what they have read: somebody has told them too early", n)
	}
	clock.pass(3 * time.Minute)
	run()
	r.eventually("the processes have read the file again", func(context.Context) bool {
		n, all := r.serves(pods, "two")
		return n == 3 && all
	})
	told := r.outcomeOf("web", events.VerbCompleted)
	if want := "3 pods answered the request to reload at http://:9090/-/reload for secret/db (password)"; told.Reason != "reloaded-in-place" || told.Message != want {
		t.Errorf("the outcome is %s: %s, want %s", told.Reason, told.Message, want)
	}
	r.hasRolledForTheLast("deployment/web", events.Source{Kind: events.KindSecret, Name: "db"})
	r.eventually("a Kubernetes Event says so", func(context.Context) bool { return len(r.kubeEvents("web", "ReloadedInPlace")) == 1 })
	r.quiet()
	testkit.WantEqual(t, "rollouts", once("deployment/variable"), r.tally().since(before))
}
