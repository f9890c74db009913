//go:build !race

package actuate_test

import (
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"
)

// makeCrowd makes so many workloads of a namespace that all read the Secret crowd there, and returns their names.
func makeCrowd(s *scene, of string, count int) []string {
	var names []string
	for i := range count {
		name := nameIn(of, "crowd-"+strconv.Itoa(i))
		s.workload(name, auto, reads("secret/crowd"))
		names = append(names, name)
	}
	if count > 0 {
		s.observe(of + "/secret/crowd")
	}
	return names
}

// rollForEver has an actuator without limits begin rollouts of crowds, which do not end.
func rollForEver(s *scene, crowds ...[]string) {
	s.Helper()
	s.options.MaxRollouts, s.options.RolloutTimeout = 0, 24*time.Hour
	s.startFor(time.Minute)
	for _, crowd := range crowds {
		s.stall(crowd...)
		if len(crowd) > 0 {
			s.set(parse(crowd[0]).namespace+"/secret/crowd", "password", "two")
		}
	}
	s.settle()
	s.wantRolls(slices.Concat(crowds...)...)
}

func TestNoMoreRolloutsAreInProgressThanAllowed(t *testing.T) {
	withoutPods := func(s *scene, name string) { s.scale(name, 0) }
	for _, tt := range []struct {
		name  string
		limit int
		// others and bank are how many rollouts are in progress in this namespace and in another one, and all says that all namespaces are watched.
		others, bank int
		all          bool
		// before and after say what happens to each of the others before its rollout begins, or then, and web what happens to the one to be rolled.
		before, after, web func(*scene, string)
		waits              bool
	}{
		{name: "a place is free", limit: 2, others: 1},
		{name: "no place is free", limit: 2, others: 2, waits: true},
		{name: "a rollout without pods takes none", limit: 1, others: 1, before: withoutPods},
		{name: "nor does one that waits for a person", limit: 1, others: 1, after: func(s *scene, name string) { s.pauseRollout(name) }},
		{name: "a workload without pods needs none", limit: 1, others: 1, web: withoutPods},
		{name: "there is no limit", limit: 0, others: 3},
		{name: "a namespace may take all where no other is watched", limit: 10, others: 9},
		{name: "otherwise it may take half, so that another finds a slot at once", limit: 10, others: 5, all: true, waits: true},
		{name: "beside one that is busy it may take a third", limit: 10, others: 3, bank: 4, all: true, waits: true},
	} {
		playOf(t, tt.name, func(s *scene) {
			each := func(names []string, happens func(*scene, string)) {
				for _, name := range names {
					if happens != nil {
						happens(s, name)
					}
				}
			}
			if !tt.all {
				s.options.Namespaces = []string{namespace}
			}
			s.workload("web", auto, reads("secret/db"))
			s.observe("secret/db")
			others := makeCrowd(s, namespace, tt.others)
			each([]string{"web"}, tt.web)
			each(others, tt.before)
			rollForEver(s, others, makeCrowd(s, "bank", tt.bank))
			each(others, tt.after)
			s.options.MaxRollouts = tt.limit
			s.restartFor(time.Minute)
			s.wantRolls()
			s.told()
			s.settled("secret/db", "password", "two")
			if !tt.waits {
				s.wantRolls("web")
				return
			}
			s.wantRolls()
			s.wantTold("web held limit-reached")
		})
	}
}

// Of the two places, one is taken by a rollout in progress, and the other one by a patch that the API server takes its time to answer.
func TestAPatchThatIsUnderWayTakesAPlace(t *testing.T) {
	play(t, func(s *scene) {
		s.options.MaxRollouts, s.options.Namespaces, s.options.RolloutTimeout = 2, []string{namespace}, 24*time.Hour
		s.workload("web", auto, reads("secret/db"))
		s.workload("patched", auto, reads("secret/patched"))
		others := makeCrowd(s, namespace, 1)
		s.begin("secret/db", "secret/patched")
		s.stall(others[0])
		s.settled("shop/secret/crowd", "password", "two")
		s.wantRolls(others...)
		s.patchesTake("patched", 10*time.Second)
		s.settled("secret/patched", "password", "three")
		s.settled("secret/db", "password", "two")
		s.pass(6 * time.Second) // Outcomes wait for patches, but not for longer.
		s.wantRolls()
		s.wantLast("web", "held limit-reached", "")
	})
}

// What has changed meanwhile may repair the rollout.
func TestAWorkloadThatIsBeingRolledHasItsSlotAlready(t *testing.T) {
	play(t, func(s *scene) {
		s.options.MaxRollouts, s.options.Namespaces = 1, []string{namespace}
		s.workload("web", auto, reads("secret/db"))
		s.workload("other", auto, reads("secret/other"))
		s.begin("secret/db", "secret/other")
		s.stall("web")
		s.rotate("two", "web")
		s.pass(time.Second) // The next roll of a workload comes two seconds after the last.
		s.rotate("three", "web")
		s.settled("secret/other", "password", "two")
		s.wantRolls()
		s.wantLast("other", "held limit-reached", "")
		s.finish("web")
		s.settle()
		s.wantRolls("other")
	})
}

// holdPatches makes the patches of Deployments of a namespace by the newest actuator take some time, as an admission webhook of its tenant can, and
// returns what counts those that are under way.
func (s *scene) holdPatches(of string, d time.Duration) (underWay func() int64) {
	s.Helper()
	client := s.lastClient()
	var count atomic.Int64
	s.intercept("patch", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() == of {
			count.Add(1)
			takes(client, d)
			count.Add(-1)
		}
		return false, nil, nil
	})
	return count.Load
}

func TestPatchesOfOneNamespaceThatTakeLongLeaveWorkersToOthers(t *testing.T) {
	const most = 16
	play(t, func(s *scene) {
		s.options.MaxRollouts = 0
		crowd := makeCrowd(s, namespace, 3*most)
		s.readers("secret/db", "bank/web")
		s.begin("bank/secret/db")
		underWay := s.holdPatches(namespace, 10*time.Second)
		s.settled("shop/secret/crowd", "password", "two")
		if got := underWay(); got != most {
			s.Errorf("%d patches of one Secret's workloads are under way, want %d", got, most)
		}
		s.settled("bank/secret/db", "password", "two")
		s.wantRolls("bank/web")
		s.pass(time.Minute)
		s.wantRolls(crowd...)
	})
}
