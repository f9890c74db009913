package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// stepTimeout bounds each step, and each wait of the stage.
const stepTimeout = 90 * time.Second

// few is how many workloads are reported one by one.
const few = 5

// perform runs the step and checks that it had the expected effects and no others. It asks the API server, not the programs: a workload
// was rolled as often as its pod template was written, and the revision says whether Keyturn did it.
func (st step) perform(ctx context.Context, s *stage, out *report) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	published, err := st.play(ctx, s, out)
	seen := s.workloads.all()
	if wrong := st.checkRolls(s.seen, seen); wrong != nil {
		err = errors.Join(wrong, err)
	}
	if err != nil {
		return err
	}
	told := changed(s.published, published)
	if !slices.Equal(told, st.events) {
		return fmt.Errorf("published events of %v, want %v", told, st.events)
	}
	if st.check != nil {
		if err := st.check(ctx, s, out); err != nil {
			return err
		}
	}
	s.seen, s.published = seen, published
	rest := fmt.Sprintf("none of the %d workloads changed", len(seen))
	if len(st.rolls) > 0 {
		rest = fmt.Sprintf("the other %d workloads did not change", len(seen)-len(st.rolls))
	}
	out.line("result", "%s; %s", plural(len(told), "event"), rest)
	return nil
}

// play runs the step, and waits for the expected effects and until the programs have processed it. It returns the sequences of the last
// events.
func (st step) play(ctx context.Context, s *stage, out *report) (map[string]uint64, error) {
	start := time.Now()
	if err := st.act(ctx, s, out); err != nil {
		return nil, err
	}
	if err := st.awaitRolls(ctx, s, out, start); err != nil {
		return nil, err
	}
	return s.stream.done(ctx, s.published, st.events)
}

// checkRolls checks that no workload changed unexpectedly or more than once.
func (st step) checkRolls(before, now map[string]sight) error {
	var wrong []string
	for name, times := range moved(before, now) {
		if !slices.Contains(st.rolls, name) {
			wrong = append(wrong, name+" changed unexpectedly")
		} else if times > 1 {
			wrong = append(wrong, fmt.Sprintf("%s changed %d times, want once", name, times))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return errors.New(strings.Join(wrong, "; "))
}

// awaitRolls waits until the expected workloads have rolled, with all of their pods, and reports each.
func (st step) awaitRolls(ctx context.Context, s *stage, out *report, start time.Time) error {
	waiting := slices.Clone(st.rolls)
	for len(waiting) > 0 {
		var now map[string]sight
		ready := func(name string) bool {
			return now[name].writes > s.seen[name].writes && !now[name].ready.IsZero()
		}
		err := s.workloads.until(ctx, func(seen map[string]sight) bool {
			now = seen
			return slices.ContainsFunc(waiting, ready)
		})
		if err != nil {
			return fmt.Errorf("waiting for the rollout of %s: %w", strings.Join(waiting, ", "), err)
		}
		for _, name := range slices.DeleteFunc(slices.Clone(waiting), func(name string) bool { return !ready(name) }) {
			if revision := now[name].revision; revision == "" || revision == s.seen[name].revision {
				return fmt.Errorf("%s has no new revision: it was changed by something else", name)
			}
			if len(st.rolls) <= few {
				tellRoll(out, name, now[name], start)
			}
		}
		waiting = slices.DeleteFunc(waiting, ready)
	}
	if len(st.rolls) > few {
		st.tellRolls(out, s.workloads.all(), start)
	}
	return nil
}

func tellRoll(out *report, name string, now sight, start time.Time) {
	effect := "its next Job reads the new content"
	if now.pods > 0 {
		effect = fmt.Sprintf("%s ready after %s", plural(int(now.pods), "new pod"), seconds(now.ready.Sub(start)))
	}
	out.line("result", "%-18s patched after %s, %s", name, seconds(now.patched.Sub(start)), effect)
}

func (st step) tellRolls(out *report, now map[string]sight, start time.Time) {
	var patched, ready []time.Duration
	for _, name := range st.rolls {
		patched = append(patched, now[name].patched.Sub(start))
		ready = append(ready, now[name].ready.Sub(start))
	}
	out.line("result", "%s rolled once each: the first patched after %s, the last after %s,", plural(len(st.rolls), "workload"),
		seconds(slices.Min(patched)), seconds(slices.Max(patched)))
	out.line("result", "the last new pod ready after %s", seconds(slices.Max(ready)))
}

// moved returns the workloads whose spec changed, and how often.
func moved(before, now map[string]sight) map[string]int64 {
	times := map[string]int64{}
	for name, sight := range now {
		if raised := sight.writes - before[name].writes; raised != 0 {
			times[name] = raised
		}
	}
	return times
}

// changed returns the sources with new events, sorted.
func changed(before, now map[string]uint64) []string {
	sources := slices.Sorted(maps.Keys(now))
	return slices.DeleteFunc(sources, func(source string) bool { return now[source] == before[source] })
}

func plural(n int, what string) string {
	switch n {
	case 0:
		return "no " + what
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
