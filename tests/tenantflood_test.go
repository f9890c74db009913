package tests

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// floodEnv is the variable with the duration of a flood that is measured, such as 10m. Without it the flood takes as long as two changes of the other
// tenant, with a budget that is as small.
const floodEnv = "KEYTURN_FLOOD"

// memoryLimit is that of both programs in deploy.
const memoryLimit = 512 << 20

// tenantFlood is what a tenant does to others in a namespace of its own.
type tenantFlood struct {
	*rig
	// unthrottled is a client that sends as fast as the API server answers.
	unthrottled kubernetes.Interface
	churned     atomic.Int64
}

// newTenantFlood prepares a tenant with broken pods of the lowest wave, that are to be rolled for each ConfigMap.
func newTenantFlood(r *rig) *tenantFlood {
	r.Helper()
	config := rest.CopyConfig(plane.Config())
	config.QPS = -1
	r.secret("shared", map[string]string{"password": "one"})
	for i := range 8 {
		r.createStuck(r.reading("stuck-"+strconv.Itoa(i), "shared", 1, map[string]string{
			"keyturn.dev/wave":    "-1000",
			"keyturn.dev/roll-on": "auto, configmap/*, " + strings.Repeat("configmap/"+strings.Repeat("*a", 100)+", ", 70) + "secret/shared",
		}))
	}
	return &tenantFlood{rig: r, unthrottled: kubernetes.NewForConfigOrDie(config)}
}

// run floods until ctx is done.
func (f *tenantFlood) run(ctx context.Context) {
	var flooding sync.WaitGroup
	for _, one := range []func(ctx context.Context, i int) error{f.churn, f.writeManyKeys, f.annotate} {
		flooding.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := one(ctx, i); err != nil && ctx.Err() == nil {
					f.Error(err)
					return
				}
			}
		})
	}
	flooding.Wait()
}

// churn creates and deletes a ConfigMap of a name of its own, with about as many keys as an event lists.
func (f *tenantFlood) churn(ctx context.Context, i int) error {
	data := make(map[string]string)
	for key := range 900 {
		data[fmt.Sprintf("a-key-with-a-long-name-%04d", key)] = strconv.Itoa(i)
	}
	name := "churned-" + strconv.Itoa(i)
	if err := programs.SetConfigMap(ctx, f.unthrottled, f.namespace, name, data); err != nil {
		return err
	}
	f.churned.Add(1)
	return f.unthrottled.CoreV1().ConfigMaps(f.namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

// writeManyKeys changes one of 100,000 keys.
func (f *tenantFlood) writeManyKeys(ctx context.Context, i int) error {
	data := make(map[string]string)
	for key := range 100_000 {
		data["k"+strconv.FormatInt(int64(key), 36)] = ""
	}
	data["k0"] = strconv.Itoa(i)
	return programs.SetConfigMap(ctx, f.unthrottled, f.namespace, "many", data)
}

// annotate writes a huge annotation and a huge expression on a workload.
func (f *tenantFlood) annotate(ctx context.Context, i int) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/huge":"%d%s","configmap.reloader.stakater.com/reload":"(%s){%d}"}}}`,
		i, strings.Repeat("x", 200<<10), strings.Repeat("a?", 2000), 900+i%2)
	_, err := f.unthrottled.AppsV1().Deployments(f.namespace).Patch(ctx, "stuck-0", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// rotation changes the Secret of a tenant that behaves, and returns how long its workload takes to be patched.
func (r *rig) rotation(number int) time.Duration {
	r.Helper()
	before := programs.Revision(&r.deployment("web").Spec.Template)
	began := time.Now()
	r.secret("db", map[string]string{"password": strconv.Itoa(number)})
	r.eventually("web is patched", func(context.Context) bool { return programs.Revision(&r.deployment("web").Spec.Template) != before })
	took := time.Since(began)
	r.awaitTold(events.VerbCompleted, number)
	return took
}

// A tenant with rights in its own namespace does all it can to the streams and the memory that it shares with another. It is not parallel: the flood
// takes all that the API server can do, for as long as two changes of the other take.
func TestATenantThatFloodsTheStreamsHarmsNoOther(t *testing.T) {
	var takes, pause time.Duration
	quiet, budget, text := 2, []string{"--namespace-budget", "100000"}, os.Getenv(floodEnv)
	if text != "" {
		var err error
		if takes, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", floodEnv, err)
		}
		pause, quiet, budget = 10*time.Second, 10, nil
	}
	shop, bank := tenants(t, "--settle", "1s", "--max-rollouts", "4")
	if text != "" {
		built, err := programs.Build(t.Context(), false) // the race detector takes memory
		testkit.Must(t, err)
		shop.programs = shop.programs.Upgraded(built)
	}
	shop.secret("db", map[string]string{"password": "0"})
	shop.deploy(shop.reading("web", "db", 1, map[string]string{"keyturn.dev/max-rolls-per-hour": "0"})) // It is rolled again and again.
	flood := newTenantFlood(bank)
	shop.startActuator()
	shop.startWatcher(budget...)

	number := 0
	rotate := func() time.Duration { number++; return shop.rotation(number) }
	var calm, flooded []time.Duration
	for range quiet {
		calm = append(calm, rotate())
	}
	ctx, cancel := context.WithCancel(t.Context())
	var flooding sync.WaitGroup
	flooding.Go(func() { flood.run(ctx) })
	shop.eventually("the flood has begun", func(context.Context) bool { return flood.churned.Load() > 0 })
	for began := time.Now(); len(flooded) < quiet || time.Since(began) < takes; {
		flooded = append(flooded, rotate())
		<-time.After(pause)
	}
	cancel()
	flooding.Wait()

	shop.hasWholeHistory(number)
	if waiting := shop.series(shop.watcher, "keyturn_watcher_throttled"); waiting == "" {
		t.Error("the watcher does not say how many sources wait")
	}
	if text == "" {
		return
	}
	for _, program := range []*programs.Program{shop.watcher, shop.actuator} {
		memory, err := program.Memory()
		testkit.Must(t, err)
		t.Logf("%s: %d MB resident, %d MB at most", program.Name(), memory.RSS>>20, memory.Peak>>20)
		if memory.Peak > memoryLimit {
			t.Errorf("the %s took %d MB, more than its limit", program.Name(), memory.Peak>>20)
		}
	}
	slices.Sort(calm)
	slices.Sort(flooded)
	t.Logf("a change was patched after %s, %s at most; during the flood after %s, %s at most (%d changes)",
		calm[len(calm)/2], calm[len(calm)-1], flooded[len(flooded)/2], flooded[len(flooded)-1], len(flooded))
	t.Logf("%d names churned; %s sources wait; CHANGES %s bytes, %s events; HISTORY %s bytes", flood.churned.Load(),
		shop.series(shop.watcher, "keyturn_watcher_throttled"),
		shop.series(shop.watcher, "keyturn_stream_used_bytes", `stream="CHANGES"`),
		shop.series(shop.watcher, "keyturn_stream_events", `stream="CHANGES"`),
		shop.series(shop.watcher, "keyturn_stream_used_bytes", `stream="HISTORY"`))
	if flooded[len(flooded)/2] > 2*calm[len(calm)/2] {
		t.Error("during the flood a change took more than twice as long")
	}
}

// hasWholeHistory reports what HISTORY lacks of so many rotations and their rollouts.
func (r *rig) hasWholeHistory(rotations int) {
	r.Helper()
	b := r.connect()
	var count map[events.Verb]int
	natstest.Publish(r.T, func() error {
		count = make(map[events.Verb]int)
		return b.History(r.Context(), bus.HistoryQuery{Namespace: r.namespace}, func(stored events.Stored) error {
			if change, err := stored.Change(); err == nil && change.Source.Name == "db" {
				count[change.Verb]++
			}
			if outcome, err := stored.Outcome(); err == nil {
				count[outcome.Verb]++
			}
			return nil
		})
	})
	for _, verb := range []events.Verb{events.VerbChanged, events.VerbStarted, events.VerbCompleted} {
		if count[verb] != rotations {
			r.Errorf("HISTORY has %d events %s of the tenant that behaves, want %d", count[verb], verb, rotations)
		}
	}
}
