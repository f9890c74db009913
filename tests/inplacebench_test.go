package tests

import (
	"context"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/kubelet"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// reloadDelayEnv is the variable with the --reload-in-place that is measured beside a restart, such as 2m. Kubelets then refresh files when three quarters
// of it are over. Without it they do so at once, the delay passes by the clock of the actuator, and nothing is measured.
const reloadDelayEnv = "KEYTURN_RELOAD_MEASURED"

// arrival is when the processes of a workload had a content, and which pods they were of before and after.
type arrival struct {
	took          time.Duration
	before, after []string
}

// replaced counts the pods that are gone.
func (a arrival) replaced() int {
	gone := slices.DeleteFunc(slices.Clone(a.before), func(name string) bool { return slices.Contains(a.after, name) })
	return len(gone)
}

// arrives waits until all processes have a content, since a time. Refreshed is when the files of running pods are written, and latest how long after
// that they have it.
func (r *rig) arrives(k *kubelet.Kubelet, want string, count int, since, refreshed time.Time, latest time.Duration) arrival {
	r.Helper()
	before, err := k.Served(r.Context())
	testkit.Must(r, err)
	a := arrival{before: slices.Sorted(maps.Keys(before))}
	ctx, stop := running.WithTimeout(r.Context(), max(0, time.Until(refreshed))+latest)
	defer stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if !refreshed.IsZero() && time.Now().After(refreshed) {
			testkit.Must(r, k.Refresh(r.Context()))
			refreshed = time.Time{}
		}
		testkit.Must(r, k.Sync(r.Context()))
		if n, all := r.serves(k, want); n == count && all {
			break
		}
		select {
		case <-ctx.Done():
			r.Fatalf("not all processes have the content: %v, %v", before, context.Cause(ctx))
		case <-tick.C:
		}
	}
	a.took = time.Since(since)
	after, err := k.Served(r.Context())
	testkit.Must(r, err)
	a.after = slices.Sorted(maps.Keys(after))
	return a
}

// It measures what docs/measured/benchmarks.md has, and so runs alone.
func TestAReloadInPlaceReplacesNoPodWhereARestartReplacesAll(t *testing.T) {
	const count = 3
	delay, refresh := 2*time.Minute, time.Duration(0)
	text := os.Getenv(reloadDelayEnv)
	if text != "" {
		var err error
		if delay, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		refresh = delay * 3 / 4
	} else {
		testkit.Nightly(t)
	}
	r := newInPlaceRig(t)
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.mounting("told", "db", count))
	restarted := r.mounting("restarted", "db", count)
	delete(restarted.Annotations, "keyturn.dev/reload")
	r.deploy(restarted)
	told, others := r.processes("told", "db", "password"), r.processes("restarted", "db", "password")
	clock := &shiftedClock{}
	r.runAt(clock, func(o *actuate.Options) {
		o.ReloadInPlace, o.DialPod, o.Settle = delay, told.Dial, time.Second
	})
	r.startWatcher()

	r.set(events.KindSecret, "db", "password", "two")
	since := time.Now()
	if text == "" {
		testkit.Must(t, told.Refresh(t.Context()))
	}
	byRestart := r.arrives(others, "two", count, since, time.Time{}, patience)
	if text == "" {
		r.isHeld("told", "files-pending", "")
		clock.pass(delay)
	}
	inPlace := r.arrives(told, "two", count, since, since.Add(refresh), delay+patience)
	if byRestart.replaced() != count {
		t.Errorf("a restart has replaced %d pods", byRestart.replaced())
	}
	if diff := cmp.Diff(inPlace.before, inPlace.after); diff != "" {
		t.Errorf("pods of the one that is told in place (-before +after):\n%s", diff)
	}
	if text != "" {
		t.Logf("from the write of the Secret until %d processes have it: restart %.1f s with %d pods replaced; in place %.1f s with none, of which "+
			"--reload-in-place %.0f s and %.2f s for the rest; ratio %.2f", count, byRestart.took.Seconds(), byRestart.replaced(), inPlace.took.Seconds(),
			delay.Seconds(), (inPlace.took - delay).Seconds(), inPlace.took.Seconds()/byRestart.took.Seconds())
	}
	r.eventually("the outcome says so", func(context.Context) bool { return len(r.kubeEvents("told", "ReloadedInPlace")) == 1 })
}
