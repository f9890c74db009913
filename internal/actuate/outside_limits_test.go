//go:build !race

package actuate_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
)

// makeCrowd makes so many workloads of a namespace that all read the Secret crowd there, and returns their names.
func makeCrowd(s *scene, of string, count int) []string {
	var names []string
	for i := range count {
		name := of + "/crowd-" + strconv.Itoa(i)
		if of == namespace {
			name = "crowd-" + strconv.Itoa(i)
		}
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
	s.options.MaxRollouts, s.options.MaxRolloutsPerNamespace, s.options.RolloutTimeout = 0, 0, 24*time.Hour
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

// leadWith has an actuator with other options lead.
func leadWith(s *scene, options func(*actuate.Options)) {
	s.Helper()
	options(&s.options)
	s.restartFor(time.Minute)
	s.wantRolls()
	s.told()
}

func TestNoMoreRolloutsAreInProgressThanAllowed(t *testing.T) {
	withoutPods := func(s *scene, name string) { s.scale(name, 0) }
	tests := []struct {
		name  string
		limit int
		// others are how many rollouts are in progress. Before and after say what happens to each of them before it begins, or then.
		others        int
		before, after func(*scene, string)
		// web is what happens to the one that is to be rolled.
		web  func(*scene, string)
		want string
	}{
		{name: "a place is free", limit: 2, others: 1},
		{name: "no place is free", limit: 2, others: 2, want: "web held limit-reached"},
		{name: "a rollout without pods takes none", limit: 1, others: 1, before: withoutPods},
		{name: "nor does one that waits for a person", limit: 1, others: 1, after: func(s *scene, name string) { s.pauseRollout(name) }},
		{name: "a workload without pods needs none", limit: 1, others: 1, web: withoutPods},
		{name: "there is no limit", limit: 0, others: 3},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			each := func(names []string, happens func(*scene, string)) {
				for _, name := range names {
					if happens != nil {
						happens(s, name)
					}
				}
			}
			s.options.Namespaces = []string{namespace}
			s.workload("web", auto, reads("secret/db"))
			s.observe("secret/db")
			others := makeCrowd(s, namespace, tt.others)
			each([]string{"web"}, tt.web)
			each(others, tt.before)
			rollForEver(s, others)
			each(others, tt.after)
			leadWith(s, func(o *actuate.Options) { o.MaxRollouts = tt.limit })
			s.settled("secret/db", "password", "two")
			if tt.want == "" {
				s.wantRolls("web")
				return
			}
			s.wantRolls()
			s.wantTold(tt.want)
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

func TestANamespaceHasItsShareOfTheLimit(t *testing.T) {
	tests := []struct {
		name    string
		options actuate.Options
		// shop and bank are how many workloads of each are being rolled out.
		shop, bank int
		want       string
	}{
		{"alone it may take half, so that another finds a slot at once", actuate.Options{MaxRollouts: 10}, 5, 0, "web held limit-reached"},
		{"it may take all where no other is watched", actuate.Options{MaxRollouts: 10, Namespaces: []string{namespace}}, 9, 0, ""},
		{"it has a limit of its own", actuate.Options{MaxRollouts: 10, MaxRolloutsPerNamespace: 2}, 2, 0, "web held limit-reached"},
		{"in which others do not count", actuate.Options{MaxRollouts: 10, MaxRolloutsPerNamespace: 2}, 1, 4, ""},
		{"also where the cluster has none", actuate.Options{MaxRolloutsPerNamespace: 2}, 2, 0, "web held limit-reached"},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.workload("web", auto, reads("secret/db"))
			s.observe("secret/db")
			rollForEver(s, makeCrowd(s, namespace, tt.shop), makeCrowd(s, "bank", tt.bank))
			leadWith(s, func(o *actuate.Options) {
				o.MaxRollouts, o.MaxRolloutsPerNamespace, o.Namespaces = tt.options.MaxRollouts, tt.options.MaxRolloutsPerNamespace, tt.options.Namespaces
			})
			s.settled("secret/db", "password", "two")
			if tt.want == "" {
				s.wantRolls("web")
				return
			}
			s.wantRolls()
			s.wantTold(tt.want)
		})
	}
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

// It changes every twenty seconds for three hours, with a new leader every five minutes, which knows what is on the workload.
func TestASourceThatChangesWithoutEndRollsAWorkloadNoMoreThanTheLimit(t *testing.T) {
	const every, most, hours = 20 * time.Second, 10, 3
	play(t, func(s *scene) {
		s.options.MaxRollsPerHour = most
		s.beginWeb()
		for i := range int(hours * time.Hour / every) {
			if i%15 == 0 {
				s.restart()
			}
			s.set("secret/db", "password", strconv.Itoa(i))
			s.pass(every)
		}
		if got := len(s.whoRolled()); got != hours*most {
			s.Errorf("it is rolled %d times in %d hours, want %d in each", got, hours, most)
		}
		if !slices.ContainsFunc(s.outcomesOf("web"), func(o events.Outcome) bool { return o.Reason == "rolled-too-often" }) {
			s.Error("nobody is told")
		}
		s.pass(time.Hour)
		s.wantRolls("web")
		s.wantRolledForLast("web", "secret/db")
	})
}
