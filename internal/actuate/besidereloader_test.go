package actuate

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// reloadedAt returns a workload that Reloader has written.
func reloadedAt(t *testing.T, name, version string, at time.Time) *workload.Workload {
	t.Helper()
	return workloadOf(t, "auto", wholeDB, named(name, func(w *workload.Workload) { w.Version, w.Reloaded = version, at }))
}

func TestWorkloadsAreLeftToReloaderWhileItRolls(t *testing.T) {
	now := written
	other := reloadedAt(t, "other", "50", written)
	other.ID.Namespace = "other"
	x := indexOf(reloadedAt(t, "web", "50", written), other)
	r := &besideReloader{index: x, debounce: newDebounce(time.Second, time.Second), now: func() time.Time { return now }, by: make(map[string]reloaderRoll)}
	r.resume()
	wait := func(namespace string, since time.Time) time.Duration {
		end, waits := r.end(namespace, since)
		if !waits {
			return 0
		}
		return end.Sub(now)
	}
	want := func(what, namespace string, since time.Time, want time.Duration) {
		t.Helper()
		if got := wait(namespace, since); got != want {
			t.Errorf("%s: it waits for %s, want %s", what, got, want)
		}
	}
	roll := func(namespace, name, version string) {
		w := reloadedAt(t, name, version, now)
		w.ID.Namespace = namespace
		x.Written(w)
		r.review(w.Key())
	}
	want("what Reloader did before is no news", "shop", now, 0)
	now = now.Add(time.Second)
	roll("shop", "web", "60")
	want("Reloader has rolled another", "shop", now, reloaderPause)
	want("it has rolled nothing in the namespace", "other", now, 0)
	now = now.Add(2 * time.Second)
	r.review(workload.Key{Kind: "deployment", Namespace: "shop", Name: "web"})
	want("someone else has written it", "shop", now, reloaderPause-2*time.Second)
	now = now.Add(time.Minute)
	want("it has rolled nothing for long", "shop", now, 0)
	roll("other", "db", "70")
	want("it works in another namespace first", "shop", now, reloaderPause)
	want("the change has waited for long", "shop", now.Add(-reloaderPatience+time.Second), time.Second)
	want("the change has waited too long", "shop", now.Add(-reloaderPatience), 0)
	now = now.Add(reloaderMemory)
	roll("other", "db", "80")
	want("it has long rolled nothing in the namespace", "shop", now, 0)
	r.review(workload.Key{Kind: "deployment", Namespace: "shop", Name: "gone"})
}

func TestANamespaceInWhichReloaderHasNothingLeftToRollIsForgotten(t *testing.T) {
	web, db := reloadedAt(t, "web", "50", written), reloadedAt(t, "db", "51", written)
	x := indexOf(web, db)
	r := &besideReloader{index: x, debounce: newDebounce(time.Second, time.Second), now: func() time.Time { return written }, by: make(map[string]reloaderRoll)}
	r.resume()
	for i, w := range []*workload.Workload{web, db} {
		if len(r.by) != 1 {
			t.Errorf("%d namespaces are known while %d workloads are left", len(r.by), 2-i)
		}
		x.Forget(w.Key(), w.ID.UID, "")
		r.review(w.Key())
	}
	if len(r.by) > 0 {
		t.Errorf("%v is known", r.by)
	}
}

func TestAChangeThatIsLeftToReloaderIsRolledWhenReloaderDoesNot(t *testing.T) {
	for _, test := range []struct {
		name string
		// version is the resourceVersion of Reloader's roll of the workload, empty if it makes none.
		version string
		rolls   bool
	}{
		{"Reloader rolls it", "101", false},
		{"Reloader does not", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			now, options := written, testOptions()
			options.Now = func() time.Time { return now }
			web, peer := reloadedAt(t, "web", "50", written.Add(-time.Hour)), reloadedAt(t, "peer", "51", written.Add(-time.Hour))
			l := loopOf(t, options, web, peer)
			l.besideReloader.resume()
			l.dispatcher.index.Written(reloadedAt(t, "peer", "102", written))
			l.besideReloader.review(peer.Key())
			p := l.debounce.pend(web, changeOf(nil))
			l.debounce.schedule(p, now)
			l.dispatcher.dispatch(t.Context())
			if p.held != plan.ReloaderFirst || !p.due.Equal(now.Add(reloaderPause)) {
				t.Fatalf("it is held for %s until %s", p.held, p.due)
			}
			if test.version != "" {
				now = now.Add(time.Second)
				rolled := reloadedAt(t, "web", test.version, written)
				rolled.TemplateVersion = test.version
				l.dispatcher.index.Written(rolled)
				l.besideReloader.review(web.Key())
				if !p.due.Equal(now) {
					t.Errorf("it is decided at %s, want at once", p.due)
				}
			} else {
				now = p.due
			}
			decided := l.dispatcher.decide(p, l.dispatcher.index.Get(web.Key()))
			if decided.rolls != test.rolls {
				t.Errorf("it is rolled: %t, want %t: %+v", decided.rolls, test.rolls, decided.doing)
			}
			if why := l.dispatcher.admission.obstacle(web, decided.doing, p.first); decided.rolls && why.reason != plan.None {
				t.Errorf("it is still held for %s", why.reason)
			}
		})
	}
}
