//go:build !race

package actuate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/actuate"
)

// repairs are what people do about a workload whose rollout has failed. Undo puts it back as it was before.
var repairs = []struct {
	name string
	mend func(s *scene, failed string, undo func())
	// isRolled says that the one that failed is rolled again.
	isRolled bool
}{
	{"by hand", func(s *scene, failed string, _ func()) { s.repair(failed) }, false},
	{"by an undo", func(_ *scene, _ string, undo func()) { undo() }, false},
	{"by a new value", func(s *scene, failed string, _ func()) {
		s.loosen(failed)
		s.set("secret/db", "password", "three")
	}, true},
}

func TestOfTenOneGoesNextHoweverTheFirstIsRepaired(t *testing.T) {
	for name, options := range map[string]func(*actuate.Options){
		"with a canary": func(o *actuate.Options) { o.Canary = true },
		"one at a time": func(o *actuate.Options) { o.MaxRolloutsPerNamespace = 1 },
	} {
		for leader, leads := range map[string]func(*scene){
			"the same leader": func(*scene) {},
			"the next leader": func(s *scene) { s.restart() },
		} {
			for _, repair := range repairs {
				t.Run(name+", "+repair.name+", "+leader, func(t *testing.T) {
					play(t, func(s *scene) {
						options(&s.options)
						left, undo := tenOfWhichOneFails(s)
						leads(s)
						s.pass(10 * time.Second)
						s.wantRolls()
						failed := left[0]
						repair.mend(s, failed, undo)
						if !repair.isRolled {
							left, failed = left[1:], ""
						}
						s.pass(10 * time.Second)
						wantNext(s, left, failed)
					})
				})
			}
		}
	}
}

// tenOfWhichOneFails makes ten workloads of one Secret, has it change, and one of them fail, and wants the others to wait and to be told. It returns
// all, that one first, and what undoes its roll. The rollouts of the others do not end by themselves.
func tenOfWhichOneFails(s *scene) (names []string, undo func()) {
	s.Helper()
	for i := range 10 {
		names = append(names, fmt.Sprintf("web-%d", i))
		s.workload(names[i], auto, reads("secret/db"))
	}
	s.begin("secret/db")
	undos := make(map[string]func())
	for _, name := range names {
		undos[name] = s.revisionOf(name)
		s.stall(name)
	}
	s.set("secret/db", "password", "two")
	s.settle()
	first := s.whoRolled()
	if len(first) != 1 || s.options.Canary && first[0] != names[0] {
		s.Fatalf("first, %q are rolled", first)
	}
	failed := first[0]
	s.fail(failed)
	s.pass(10 * time.Second)
	s.wantRolls()
	told, all := []string{failed + " failed deadline-exceeded"}, []string{failed}
	for _, name := range names {
		if name != failed {
			told, all = append(told, name+" held peer-failed"), append(all, name)
		}
	}
	s.wantAmongTold(told...)
	return all, undos[failed]
}

// wantNext wants one of those that are left to have been rolled, and with --canary the first of them, and the others to be once its pods are ready.
// The one that failed, if it is rolled again, waits for nobody: it may go with the one, or be the one.
func wantNext(s *scene, left []string, failed string) {
	s.Helper()
	next := s.whoRolled()
	ones := slices.DeleteFunc(slices.Clone(next), func(name string) bool { return name == failed })
	if len(next) == 0 || len(ones) > 1 || s.options.Canary && !slices.Contains(next, left[0]) {
		s.Errorf("next, %q are rolled", next)
	}
	for _, name := range left {
		s.loosen(name)
	}
	for _, name := range ones {
		s.finish(name)
	}
	if s.options.Canary {
		s.pass(bakeTime - time.Minute)
		s.wantRolls()
	}
	s.pass(time.Minute + bakeCheck)
	s.wantRolls(slices.DeleteFunc(left, func(name string) bool { return slices.Contains(next, name) })...)
	s.pass(time.Hour)
	s.wantRolls()
}
