package actuate

import (
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// TestAHoldForDaysIsNotedAsLongAndNotAsLate changes a source each day while the workload is on hold.
func TestAHoldForDaysIsNotedAsLongAndNotAsLate(t *testing.T) {
	const days = 9
	c := newStreamless(t, deploymentOf("web", "db", onHold()))
	now, options, reader := time.Now().Truncate(time.Second), c.options(), sdkmetric.NewManualReader()
	options.Now, options.Meter = func() time.Time { return now }, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	observe := func(deployment *appsv1.Deployment) {
		w, _ := a.index.Read(deployments, deployment)
		a.index.Listed(w, "")
	}
	observe(c.get("web"))
	l := newLoop(a.surroundings, unwritten(a))
	w := a.index.All()[0]
	for day := range days {
		version := c.next()
		e := eventOf(changeOf(func(c *events.Change) {
			c.ResourceVersion, c.ChangedAt, c.Fingerprint, c.Time = version, version, fp(string("123456789"[day])), now
		}))
		e.delivery.Received, e.delivery.Seq, e.open = now, uint64(day+1), 1
		l.intake.consider(t.Context(), e, w, nil)
		l.dispatcher.dispatch(t.Context())
		now = now.Add(24 * time.Hour)
	}
	l.takeSnapshot()
	if got := l.snapshots.Load().oldest[plan.OnHold]; got != days*24*time.Hour {
		t.Errorf("it has waited for %s, want %d days", got, days)
	}
	c.annotated("web", map[string]string{events.AnnotationHold: ""})
	observe(c.get("web"))
	l.debounce.wake(w.Key(), now)
	l.dispatcher.dispatch(t.Context())
	patched := <-l.patcher.results
	now = now.Add(3 * time.Second)
	l.completion.finish(t.Context(), patched)
	c.wantPatched("web")
	late, ok := collect(t, reader)["keyturn.change.patch.duration"].(metricdata.Histogram[float64])
	if !ok || len(late.DataPoints) != 1 || late.DataPoints[0].Sum != 3 {
		t.Errorf("got %+v, want one patch that was made in three seconds", late.DataPoints)
	}
	if changed := l.rollouts.following.rollouts[w.Key()].changed; len(changed) != 1 || now.Sub(changed[0]) != 3*time.Second {
		t.Errorf("its pods are taken for late since %v", changed)
	}
}

func TestASourceOnHoldDelaysNoRecordOfAnother(t *testing.T) {
	b := newReadBed(t, workload.Reading{}, rollOn("secret/db, configmap/app"))
	// The template is newer than the change of the ConfigMap.
	b.deployment.ResourceVersion = "104"
	b.write("kubectl", func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].EnvFrom = append(d.Spec.Template.Spec.Containers[0].EnvFrom, corev1.EnvFromSource{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}},
		})
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation + 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	})
	b.intake.index.Written(b.read())
	w := b.intake.index.Get(b.read().Key())
	for source, version := range map[events.Source]string{db: "110", app: "104"} {
		e := eventOf(changeOf(func(c *events.Change) {
			c.Source, c.ResourceVersion, c.ChangedAt = source, version, version
			c.Keys = nil
			if source == db {
				c.Hold = "migration"
			}
		}))
		e.open = 1
		b.intake.consider(t.Context(), e, w, nil)
	}
	b.act()
	if record := recordOf(b.deployment.Annotations[annotationRolled]); len(record) != 1 || record["configmap/app"].Version != "104" {
		t.Errorf("the record is %v, want what the pods have of configmap/app", record)
	}
	p := b.debounce.byKey[w.Key()]
	if p == nil || len(p.changes) != 1 || p.changes[db] == nil || p.held != plan.SourceOnHold {
		t.Errorf("what is left is %+v, want the change of the source that is on hold", p)
	}
	if got := b.outcomes(); len(got) != 2 {
		t.Errorf("got %+v, want that one is held and one recorded", got)
	}
}

func TestTheEndOfARolloutWakesThoseThatWaitForIt(t *testing.T) {
	first, other := workload.Key{Kind: "deployment", Namespace: "shop", Name: "first"}, workload.Key{Kind: "deployment", Namespace: "shop", Name: "other"}
	held := workloadOf(t, "auto", wholeDB, named("held", nil))
	second := awaited{namespace: "shop", source: db, wave: 2}
	tests := []struct {
		name string
		why  obstacle
		// end is the workload whose rollout ends, and finished are the waves that are finished by then.
		end      workload.Key
		finished int
		wakes    bool
	}{
		{"the one that goes first", obstacle{reason: plan.CanaryFirst, peer: &workload.Workload{ID: idOf(first)}}, first, 0, true},
		{"not another one", obstacle{reason: plan.CanaryFirst, peer: &workload.Workload{ID: idOf(first)}}, other, 0, false},
		{"the last of the lower waves", obstacle{reason: plan.LowerWave, awaits: second}, first, 1, true},
		{"not one of many in a lower wave", obstacle{reason: plan.LowerWave, awaits: second}, first, 0, false},
		{"any, where it failed itself and may go before the lower waves", obstacle{reason: plan.LowerWave}, other, 0, true},
		{"its own, where its pods start", obstacle{reason: plan.PodsStarting}, held.Key(), 0, true},
		{"not another one, where its pods start", obstacle{reason: plan.PodsStarting}, other, 0, false},
		{"not another one, where its files are not refreshed yet", obstacle{reason: plan.FilesPending, awaits: awaited{workload: held.Key()}}, other, 0, false},
		{"none, where it waits for a slot, which it gets in its turn", obstacle{reason: plan.Limit}, first, 0, false},
		{"none, where it waits for people", obstacle{reason: plan.OnHold}, first, 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := loopOf(t, testOptions(), held)
			l.debounce.finished = func(of awaited) bool { return of.wave <= test.finished+1 }
			p := l.debounce.pend(held, changeOf(nil))
			l.dispatcher.keep(p, test.why)
			l.debounce.releaseHeld(test.end, written)
			if woken := !p.isHeld(); woken != test.wakes {
				t.Errorf("it is woken: %t, want %t", woken, test.wakes)
			}
			l.debounce.take(p)
			if held := len(l.debounce.holds.by) + len(l.debounce.holds.waves); held > 0 {
				t.Errorf("%d holds are left behind", held)
			}
		})
	}
}

// The one that goes first may be another one than the one that others were found to wait for.
func TestTheBeginOfARollWakesThoseThatWaitForIt(t *testing.T) {
	first, held := tenantOf(t, "shop", "first", nil), tenantOf(t, "shop", "held", nil)
	l := loopOf(t, testOptions(), first, held)
	p := l.debounce.pend(held, rotated())
	l.dispatcher.keep(p, obstacle{reason: plan.CanaryFirst, peer: first})
	l.debounce.schedule(l.debounce.pend(first, rotated()), written)
	l.dispatcher.dispatch(t.Context())
	for range l.patcher.underWay {
		<-l.patcher.results
	}
	if !l.patcher.busy(first.Key()) || !l.patcher.busy(held.Key()) {
		t.Errorf("the first one is rolled: %t, and the other one: %t", l.patcher.busy(first.Key()), l.patcher.busy(held.Key()))
	}
}

// A failed workload need not wait for one that waits for its repair. One that has not failed still waits.
func TestWhoWaitsForARepairWakesTheFailedAlone(t *testing.T) {
	failed, other, waits := tenantOf(t, "shop", "failed", nil), tenantOf(t, "shop", "other", nil), tenantOf(t, "shop", "waits", nil)
	l := loopOf(t, testOptions(), failed, other, waits)
	l.dispatcher.admission.peers.add(failed.Key())
	held := make(map[string]*pending)
	for _, w := range []*workload.Workload{failed, other} {
		held[w.ID.Name] = l.debounce.pend(w, rotated())
		l.dispatcher.keep(held[w.ID.Name], obstacle{reason: plan.LowerWave, peer: waits})
	}
	l.dispatcher.keep(l.debounce.pend(waits, rotated()), obstacle{reason: plan.PeerFailed, peer: failed})
	if held["failed"].isHeld() || !held["other"].isHeld() {
		t.Errorf("the one that failed is held: %t, and the other one: %t", held["failed"].isHeld(), held["other"].isHeld())
	}
}

func idOf(key workload.Key) events.Workload {
	return events.Workload{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}
}
