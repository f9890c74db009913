package tests

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/traces"
)

// What the spans of the events of a Secret, of a secret in a store, and of an ExternalSecret, are named by.
const (
	secretDestination         = "keyturn.v1.{cluster}.secret.{namespace}.{name}"
	storeDestination          = "keyturn.v1.{cluster}.openbao.{namespace}.{name}"
	externalSecretDestination = "keyturn.v1.{cluster}.externalsecret.{namespace}.{name}"
)

// ofTheStore are the spans of the store's watcher, ofACluster those of each cluster that reads the store.
var (
	ofTheStore = []string{"detect openbao", "publish " + storeDestination}
	ofACluster = []string{
		"process " + storeDestination, "force-sync externalsecret", "wait for sync",
		"detect externalsecret", "publish " + externalSecretDestination,
		"detect secret", "publish " + secretDestination, "process " + secretDestination,
		"plan", "patch deployment", "rollout deployment",
	}
)

// Two clusters share one NATS and one secret store, which a third watcher watches for both. Here the clusters are two
// namespaces of one control plane, each with its own programs and fingerprint keys.
func TestARotationThatIsSeenOnceIsRolledInTwoClustersInOneTrace(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	n := startOutsideNATS(t)
	received := traces.Receive(t)
	options := func(cluster string) programs.Options {
		return programs.Options{
			Cluster: cluster, NATSURL: n.URL(),
			Env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + received.URL(), "OTEL_BSP_SCHEDULE_DELAY=100"},
		}
	}
	reading := func(cluster string) programs.Options {
		o := options(cluster)
		o.ActuatorArgs = []string{"--stores-from", "shared"}
		return o
	}
	east := newStoreRig(t, byHTTP, reading("east"))
	west := newNeighbour(t, east, reading("west"))
	watching := options("shared")
	watching.WatcherArgs = []string{"--sources=", "--openbao-config", east.config, "--openbao-audit-listen", east.listen}
	shared := prepareRig(t, east.namespace, watching)

	east.put("shop/db", "one")
	both := map[string]*storeRig{"east": east, "west": west}
	for _, s := range both {
		s.externalSecret("db", "shop/db")
		s.reader("web", "db")
		s.startActuator()
		// The store is not theirs to watch.
		s.startWatcher("--openbao-config=", "--openbao-audit-listen=")
	}
	shared.startWatcher()
	east.feed()
	east.put("shop/db", "two")
	for _, s := range both {
		s.awaitContent("db", "two")
		s.awaitGeneration("web", 2)
	}

	// Whoever looks for the path in the store finds one trace, and in it what each of the clusters made of it.
	want := map[string][]string{"shared": ofTheStore, "east": ofACluster, "west": ofACluster}
	var trace testbed.Trace
	got := map[string][]string{}
	shared.eventually("the spans of both clusters have arrived", func(ctx context.Context) bool {
		found, _ := received.Traces(ctx, "keyturn-watcher", map[string]string{ // It never fails.
			"cloudevents.event_subject": "openbao://bao/secret/shop/db", "keyturn.verb": "rotated",
		})
		if len(found) > 1 {
			t.Fatalf("traces of the rotation: got %d, want 1", len(found))
		}
		if len(found) == 0 {
			return false
		}
		trace, got = found[0], byCluster(found[0])
		return countOf(got) >= countOf(want)
	})
	for _, operations := range want {
		slices.Sort(operations)
	}
	testkit.WantEqual(t, "spans by their cluster", want, got)

	// There is one root. Each cluster's spans are children of the one publication, and not of the other cluster's spans.
	byID, roots := map[string]testbed.Span{}, 0
	for _, span := range trace.Spans {
		byID[span.ID] = span
	}
	for _, span := range trace.Spans {
		parent, ok := byID[span.Parent]
		switch {
		case span.Parent == "":
			roots++
		case !ok:
			t.Errorf("%s is an orphan", span.Operation)
		case span.Start.Before(parent.Start):
			t.Errorf("%s began %s before its parent %s", span.Operation, parent.Start.Sub(span.Start), parent.Operation)
		}
		if span.Operation == "process "+storeDestination && parent.Operation != "publish "+storeDestination {
			t.Errorf("the parent of what %s made of it is %q, and not the publication", span.Resource["k8s.cluster.name"], parent.Operation)
		}
	}
	if roots != 1 {
		t.Errorf("roots of the trace: got %d, want 1", roots)
	}
	for name, s := range both {
		cause := s.deployment("web").Spec.Template.Annotations["keyturn.dev/cause"]
		if !strings.Contains(cause, "for bao/root/secret/shop/db/2/") {
			t.Errorf("the cause on web of %s: got %q, want the version in the store", name, cause)
		}
		if log := s.watcher.Output(); strings.Contains(log, `"source":"openbao/`) {
			t.Errorf("the watcher of %s has published something of the store", name)
		}
	}

	// What is refused stays refused: nothing else of the cluster that watches the store is taken, nor by whom it is not for.
	told := east.ask("history", "--all-clusters", "--all-namespaces", "--since", "", "--verb", "rotated,completed")
	for _, line := range []string{"shared", "east", "west"} {
		if !strings.Contains(told, line) {
			t.Errorf("the history across clusters has nothing of %s:\n%s", line, told)
		}
	}
	drawn(east, west, "https://jaeger.example.com")
}

// newNeighbour is another cluster that reads the same store: a namespace and programs of its own.
func newNeighbour(t *testing.T, s *storeRig, options programs.Options) *storeRig {
	t.Helper()
	neighbour := *s
	options.ActuatorArgs = append([]string{"--settle", "50ms", "--force-sync"}, options.ActuatorArgs...)
	options.WatcherArgs = append(options.WatcherArgs, "--sources", "secret,configmap,externalsecret")
	neighbour.rig = newRig(t, options)
	neighbour.applyStore()
	t.Cleanup(neighbour.leave)
	return &neighbour
}

// byCluster returns the operations of a trace by cluster.
func byCluster(trace testbed.Trace) map[string][]string {
	operations := make(map[string][]string)
	for _, span := range trace.Spans {
		cluster := span.Resource["k8s.cluster.name"]
		operations[cluster] = append(operations[cluster], span.Operation)
	}
	for _, list := range operations {
		slices.Sort(list)
	}
	return operations
}

func countOf(operations map[string][]string) int {
	return len(slices.Concat(slices.Collect(maps.Values(operations))...))
}
