//go:build !race

package actuate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/plan"
)

// story is a scene in which anything may happen, and what somebody notes who looks at it from outside: what each source had over time, what people
// and programs did, and the patches that came of it.
type story struct {
	*scene
	random *rand.Rand
	// calm says that nothing is lost, that one actuator leads all the time, and that nobody else writes what Keyturn does. Then an actuator knows
	// everything.
	calm bool

	sources   []*storySource
	workloads []*storyWorkload
	rolls     []*storyRoll

	// actuators are those that run, and started counts those that were started. leaders counts who has led or may have.
	actuators        []storyActuator
	started, leaders int
	// silent says that nobody hears from NATS, and unanswered that answers to patches are lost.
	silent, unanswered bool
	// frozen is a workload whose patches are refused for good, nil if there is none.
	frozen *storyWorkload
	// refused counts how often a patch of that was sent within refusedRest.
	refused int
	// quiet is what had been done when everything came to rest.
	quiet  doings
	gauges *recordedTelemetry

	// tale has a line for all that has happened, and looked counts the patches that were looked at. fresh counts the values that were made up.
	tale          []string
	looked, fresh int
}

// newStory returns the story of a seed.
func newStory(s *scene, seed uint64) *story {
	return &story{scene: s, random: rand.New(rand.NewPCG(seed, 7)), calm: seed%3 == 0, leaders: 1}
}

// notef adds a line to the tale.
func (st *story) notef(format string, args ...any) {
	st.tale = append(st.tale, fmt.Sprintf("%9s ", st.elapsed().Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// onceIn returns true once in so many times.
func (st *story) onceIn(times int) bool { return st.random.IntN(times) == 0 }

// oneOf returns one of a list.
func oneOf[T any](st *story, list ...T) T { return list[st.random.IntN(len(list))] }

// freshValue returns a value that no source has had.
func (st *story) freshValue() string {
	st.fresh++
	return fmt.Sprintf("v%d", st.fresh)
}

// open makes sources and workloads, and has an actuator lead, or two of which one leads.
func (st *story) open() {
	o := &st.options
	o.RevertDelays = [plan.RevertRetries]time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}
	o.RolloutTimeout, o.MaxRollsPerHour = time.Minute, 100
	if st.onceIn(4) {
		o.Canary = 20 * time.Second
	}
	o.RollAll, o.RollOnDelete = st.onceIn(4), st.onceIn(3)
	o.RollOnCreate = oneOf(st, plan.CreateAuto, plan.CreateAuto, plan.CreateAlways, plan.CreateNever)
	o.MaxRollouts = oneOf(st, 50, 50, 2)
	o.LeaderElect = !st.calm && st.onceIn(4)
	st.notef("calm: %t, --canary=%s --roll-all=%t --roll-on-delete=%t --roll-on-create=%s --max-rollouts=%d --leader-elect=%t",
		st.calm, o.Canary, o.RollAll, o.RollOnDelete, o.RollOnCreate, o.MaxRollouts, o.LeaderElect)

	names := []string{"secret/db", "configmap/app", "secret/cache"}[:1+st.random.IntN(3)]
	if st.onceIn(2) {
		st.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "office"}})
		names = append(names, "office/secret/db")
	} else if len(names) == 1 {
		names = append(names, "configmap/app")
	}
	for i, name := range names {
		of := newStorySource(name)
		if i == 0 || !st.onceIn(5) {
			of.data, of.last = firstContent(), firstContent()
		}
		st.sources = append(st.sources, of)
	}
	for i := range 3 + st.random.IntN(4) {
		st.makeWorkload(i)
	}
	for _, of := range st.sources {
		if of.data != nil {
			st.observe(of.name)
		}
	}
	st.lead()
	if o.LeaderElect {
		st.lead()
	}
	st.wait(time.Minute)
}

// look takes in the patches since it was last called.
func (st *story) look() {
	synctest.Wait()
	for _, patch := range st.writesSince(&st.looked) {
		for _, w := range st.workloads {
			if w.name == patch.workload {
				st.take(w, patch)
			}
		}
	}
}

// wait lets time pass. Operators look at their workloads every other second.
func (st *story) wait(d time.Duration) {
	const often = 2 * time.Second
	isOperated := func(w *storyWorkload) bool { return w.operated }
	for d > 0 {
		part := d
		if slices.ContainsFunc(st.workloads, isOperated) {
			part = min(d, often)
		}
		st.pass(part)
		st.look()
		for _, w := range st.workloads {
			if w.operated && w.template.revision != "" {
				st.restore(w)
			}
		}
		d -= part
	}
}

// await waits until everybody has what it must have, for a time at most.
func (st *story) await(most time.Duration) {
	const part = 10 * time.Second
	for waited := time.Duration(0); waited < most && len(st.unrolled()) > 0; waited += part {
		st.wait(part)
	}
	st.wait(part)
}

// doings counts what was done so far.
type doings struct{ patches, rolls, outcomes, notices int }

func (st *story) count() doings {
	st.look()
	outcomes := len(st.outcomesSoFar())
	st.cluster.mu.Lock()
	defer st.cluster.mu.Unlock()
	return doings{patches: len(st.writes), rolls: len(st.rolls), outcomes: outcomes, notices: len(st.notices)}
}
