package actuate

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// fanOut is a change of one Secret that many Deployments of a namespace read, with a loop that rolls them. The API server and the controllers are
// simulated: each patch is applied, and one rollout after the other ends.
type fanOut struct {
	*loop
	testing.TB
	// spent is the time of the loop's own work.
	spent time.Duration
	// begun are the Deployments that are being rolled. Ended counts those that were rolled, and resting those that must not be.
	begun          []string
	ended, resting int
	// early are those that began before a lower wave had ended, and left counts by wave those that have not ended.
	early []string
	left  map[int]int
	// most is how many were rolled at the same time. Looks counts how often the dispatcher asked for the time, as it does at each look at a workload,
	// or the waves asked whether one is finished.
	most, looks int

	mu          sync.Mutex
	deployments map[string]*appsv1.Deployment
	version     int
}

// newFanOut makes n Deployments.
func newFanOut(tb testing.TB, shape fanOutShape, n int) *fanOut {
	tb.Helper()
	f := &fanOut{TB: tb, version: 1000, deployments: make(map[string]*appsv1.Deployment, n), left: make(map[int]int)}
	client := fake.NewClientset()
	client.PrependReactor("patch", "deployments", f.patch)
	options := shape.options()
	options.Client, options.Settle, options.Now = client, 0, time.Now
	a, err := New(options)
	if err != nil {
		tb.Fatal(err)
	}
	f.loop = newLoop(a.surroundings, unwritten(a))
	f.dispatcher.now = func() time.Time {
		f.looks++
		return time.Now()
	}
	waves := f.dispatcher.admission.waves
	unfinished := waves.unfinished
	waves.unfinished = func(key workload.Key, source events.Source) bool {
		f.looks++
		return unfinished(key, source)
	}
	e := eventOf(changeOf(nil))
	e.delivery.Received, e.open = f.now(), 1
	for i := range n {
		d := deploymentOf(fmt.Sprintf("web-%05d", i), "db", shape.annotations(i))
		d.ResourceVersion = "50"
		f.deployments[d.Name] = d
		w := f.observe(d)
		f.debounce.add(w, e, nil, f.now())
		if shape.rests(i) {
			f.resting++
		} else {
			f.left[w.Wave]++
		}
	}
	f.dirty.take()
	return f
}

func (f *fanOut) next() string {
	f.version++
	return strconv.Itoa(f.version)
}

// observe shows the index a Deployment whose pods are all ready.
func (f *fanOut) observe(d *appsv1.Deployment) *workload.Workload {
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	w, ok := f.dispatcher.index.Read(deployments, d)
	if !ok {
		f.Fatal("it is no workload")
	}
	f.dispatcher.index.Written(w)
	return w
}

// patch answers a patch as an API server does.
func (f *fanOut) patch(action k8stesting.Action) (bool, runtime.Object, error) {
	sent, ok := action.(k8stesting.PatchAction)
	if !ok {
		return true, nil, errors.New("it is no patch")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	after, err := patched(f.deployments[sent.GetName()], action)
	if err != nil {
		return true, nil, err
	}
	d, ok := after.(*appsv1.Deployment)
	if !ok {
		return true, nil, errors.New("it is no Deployment")
	}
	d.Generation++
	d.ResourceVersion = f.next()
	f.deployments[d.Name] = d
	for wave, left := range f.left {
		if left > 0 && wave < f.wave(d.Name) {
			f.early = append(f.early, d.Name)
		}
	}
	f.begun = append(f.begun, d.Name)
	f.most = max(f.most, len(f.begun))
	return true, d, nil
}

// run rolls all of them.
func (f *fanOut) run() {
	f.step(func() {})
	for {
		for !f.patcher.idle() {
			result := <-f.patcher.results
			f.step(func() { f.completion.finish(f.Context(), result) })
		}
		f.outbox.waiting = nil
		f.mu.Lock()
		if len(f.begun) == 0 {
			f.mu.Unlock()
			break
		}
		d := f.deployments[f.begun[0]].DeepCopy()
		f.begun = f.begun[1:]
		d.ResourceVersion = f.next()
		f.deployments[d.Name] = d
		f.left[f.wave(d.Name)]--
		f.mu.Unlock()
		f.ended++
		f.step(func() {
			f.observe(d)
			f.review(f.Context())
		})
	}
	if f.ended != len(f.deployments)-f.resting {
		f.Fatalf("%d of %d were rolled, and %d rest", f.ended, len(f.deployments), f.resting)
	}
}

func (f *fanOut) wave(name string) int {
	return f.dispatcher.index.Get(workload.Key{Kind: "deployment", Namespace: "shop", Name: name}).Wave
}

// step does what the loop does when something arrives.
func (f *fanOut) step(take func()) {
	began := time.Now()
	take()
	f.dispatcher.dispatch(f.Context())
	f.spent += time.Since(began)
}

// After a change of a Secret, each workload that reads it is looked at a few times, however many there are.
func TestWhatAFanOutCostsGrowsWithTheWorkloads(t *testing.T) {
	for _, shape := range fanOuts() {
		t.Run(shape.name, func(t *testing.T) {
			const n, times = 60, 5
			few, many := newFanOut(t, shape, n), newFanOut(t, shape, times*n)
			few.run()
			many.run()
			if most := shape.options().MaxRollouts; most > 0 && many.most > most {
				t.Errorf("%d are rolled at the same time, want %d at most", many.most, most)
			}
			if many.looks > times*few.looks*11/10 {
				t.Errorf("%d looks for %d workloads, and %d for %d times as many", few.looks, n, many.looks, times)
			}
		})
	}
}

func TestAFanOutBeginsNoWaveBeforeTheLowerOnesAreFinished(t *testing.T) {
	for _, shape := range fanOuts() {
		if shape.waves == 0 {
			continue
		}
		t.Run(shape.name, func(t *testing.T) {
			f := newFanOut(t, shape, 60)
			f.run()
			if len(f.early) > 0 {
				t.Errorf("%d are begun before the lower waves are finished, the first of them %s", len(f.early), f.early[0])
			}
		})
	}
}

// fanOutShape is a kind of fan-out.
type fanOutShape struct {
	name        string
	maxRollouts int
	// waves is how many there are, 0 for no annotation.
	waves int
	// closed says that half of the workloads, in the lowest wave, have a window that is closed.
	closed bool
}

func fanOuts() []fanOutShape {
	return []fanOutShape{
		{name: "limit", maxRollouts: 50},
		{name: "no limit"},
		{name: "limit and waves", maxRollouts: 50, waves: 10},
		{name: "waves", waves: 10},
		{name: "limit, waves, and closed windows", maxRollouts: 50, waves: 10, closed: true},
		{name: "waves, and closed windows", waves: 10, closed: true},
	}
}

// rests reports whether workload number i is not rolled.
func (s fanOutShape) rests(i int) bool { return s.closed && i%2 == 0 }

func (s fanOutShape) options() Options {
	options := testOptions()
	options.MaxRollouts = s.maxRollouts
	return options
}

func (s fanOutShape) annotations(i int) map[string]string {
	annotations := rollOn("auto")
	if s.waves > 0 {
		annotations["keyturn.dev/wave"] = strconv.Itoa(i % s.waves)
	}
	if s.rests(i) {
		annotations["keyturn.dev/wave"] = "-1"
		annotations["keyturn.dev/window"] = fmt.Sprintf("0 %d * * * for 1h", time.Now().UTC().Add(12*time.Hour).Hour())
	}
	return annotations
}

// BenchmarkFanOut rolls workloads that read one Secret and have one pod each. The time that the loop needs for one of them does not depend on how
// many there are.
func BenchmarkFanOut(b *testing.B) {
	for _, shape := range fanOuts() {
		for _, n := range []int{500, 2000, 8000} {
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) {
				spent, rolled := time.Duration(0), 0
				for b.Loop() {
					f := newFanOut(b, shape, n)
					f.run()
					spent, rolled = spent+f.spent, rolled+f.ended
				}
				b.ReportMetric(float64(spent.Microseconds())/float64(rolled), "µs/workload")
			})
		}
	}
}
