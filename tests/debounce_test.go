package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// debounced is an actuator whose debounce ends when the test has the time pass.
type debounced struct {
	*rig
	clock *shiftedClock
	log   *testkit.Log
}

// runDebounced runs one until the test ends. The fence must have been placed.
func (r *rig) runDebounced(settle, most time.Duration, set ...func(*actuate.Options)) *debounced {
	r.Helper()
	d := &debounced{rig: r, clock: &shiftedClock{}, log: &testkit.Log{}}
	r.runAt(d.clock, func(o *actuate.Options) {
		o.Settle, o.SettleMax, o.Logger = settle, most, d.log.Logger()
		for _, change := range set {
			change(o)
		}
	})
	r.Cleanup(func() {
		if r.Failed() {
			r.Logf("log of the debounced actuator:\n%s", d.log)
		}
	})
	return d
}

// takesAll waits, without a fixed time, until the actuator has taken all earlier changes: their debounce has begun. It is [rig.reachFence] for events
// instead of rollouts.
func (d *debounced) takesAll() {
	d.Helper()
	d.publishFence()
	for source, stored := range d.publishFence() {
		d.eventually("the actuator has taken the event of "+source.String(), func(context.Context) bool {
			return len(lines(d.log.String(), `msg="event received"`, "source="+source.String()+" ", fmt.Sprintf("seq=%d ", stored.Seq))) > 0
		})
	}
}

// settles has the debounce end, and waits until all changes have had their effect.
func (d *debounced) settles(after time.Duration) {
	d.Helper()
	d.clock.pass(after)
	d.quiet()
}

func TestChangesThatComeTogetherMakeOneRollout(t *testing.T) {
	t.Parallel()
	const settle = time.Hour
	r := newRig(t, programs.Options{NATSURL: startOutsideNATS(t).URL()})
	secret, configMap := events.KindSecret, events.KindConfigMap
	for _, name := range []string{"burst", "pair", "back", "rolled", "forth"} {
		r.write(secret, name, map[string]string{"password": "A"})
	}
	for _, name := range []string{"pair", "release", "late"} {
		r.write(configMap, name, map[string]string{"color": "A"})
	}
	// This one has pods.
	burst := programs.NewDeployment(r.namespace, "burst", 1, map[string]string{"keyturn.dev/roll-on": "auto"})
	programs.ReadSecret(&burst.Spec.Template, "burst")
	r.deploy(burst)
	r.create(workload{name: "pair", on: "auto", read: both(readsAll(secret, "pair"), readsAll(configMap, "pair"))})
	r.create(workload{name: "back", on: "auto", read: readsAll(secret, "back")})
	r.create(workload{name: "rolled", on: "auto", read: readsAll(secret, "rolled")})
	r.create(workload{name: "forth", on: "auto", read: readsAll(secret, "forth")})
	r.create(workload{kind: "deployment", name: "release", on: "auto", read: readsAll(configMap, "release")})
	r.create(workload{kind: "deployment", name: "late", on: "auto", read: readsAll(configMap, "late")})
	r.placeFence()
	actuator := r.runDebounced(settle, 24*time.Hour)
	r.startWatcher()
	before := r.tally()
	rolled := func(what string, want tally) {
		t.Helper()
		if diff := cmp.Diff(want, r.tally().since(before).withoutFence()); diff != "" {
			t.Errorf("%s: rollouts (-want +got):\n%s", what, diff)
		}
	}
	r.set(secret, "rolled", "password", "B")
	actuator.takesAll()
	actuator.settles(settle)
	rolled("one of them before", once("statefulset/rolled"))

	before = r.tally()
	for i := range 20 {
		r.set(secret, "burst", "password", strconv.Itoa(i))
	}
	r.set(secret, "pair", "password", "B")
	r.set(configMap, "pair", "color", "B")
	r.set(configMap, "release", "color", "B")
	r.setImage("release", "example.com/app:2")
	r.setImage("late", "example.com/app:2")
	r.set(configMap, "late", "color", "B")
	for _, password := range []string{"B", "A"} {
		r.set(secret, "back", "password", password)
	}
	for _, password := range []string{"C", "B"} {
		r.set(secret, "rolled", "password", password)
	}
	for _, password := range []string{"B", "A", "C"} {
		r.set(secret, "forth", "password", password)
	}
	actuator.takesAll()
	want := once("deployment/release", "deployment/late") // their own changes of the template
	rolled("before the debounce ends", want)
	actuator.settles(settle)
	// For release, the record that it needs no rollout leaves the template alone. The pods of late may have been made before the ConfigMap was changed.
	maps.Copy(want, tally{"deployment/burst": 1, "statefulset/pair": 1, "statefulset/forth": 1, "deployment/late": 2})
	rolled("changes that come together", want)

	r.hasRolledForTheLast("deployment/burst", events.Source{Kind: secret, Name: "burst"})
	r.hasRolledForTheLast("statefulset/pair", events.Source{Kind: secret, Name: "pair"})
	r.hasRolledForTheLast("statefulset/pair", events.Source{Kind: configMap, Name: "pair"})
	r.hasRolledForTheLast("deployment/release", events.Source{Kind: configMap, Name: "release"})
	r.hasRolledForTheLast("statefulset/forth", events.Source{Kind: secret, Name: "forth"})
	if revision := programs.Revision(&r.deployment("release").Spec.Template); revision != "" {
		t.Errorf("the Deployment that was changed after its ConfigMap was rolled: its revision is %s", revision)
	}
	if programs.Revision(&r.deployment("late").Spec.Template) == "" {
		t.Error("the Deployment that was changed before its ConfigMap was not rolled")
	}
}

func TestSettleMaxBoundsHowLongAWorkloadWaits(t *testing.T) {
	t.Parallel()
	const settle, most, pause = time.Hour, 90 * time.Minute, 40 * time.Minute
	r := newRig(t, programs.Options{NATSURL: startOutsideNATS(t).URL()})
	r.write(events.KindSecret, "db", map[string]string{"password": "none"})
	r.create(workload{name: "web", on: "auto", read: readsAll(events.KindSecret, "db")})
	r.placeFence()
	actuator := r.runDebounced(settle, most)
	r.startWatcher()
	before, changes := r.tally(), 0
	change := func() {
		changes++
		r.set(events.KindSecret, "db", "password", strconv.Itoa(changes))
		actuator.takesAll()
	}

	change()
	// There is never a pause as long as the debounce.
	for range most / pause {
		actuator.clock.pass(pause)
		change()
	}
	if rolled := r.tally().since(before); len(rolled) > 0 {
		t.Errorf("rolled before --settle-max is over: %v", rolled)
	}
	actuator.settles(most % pause)
	if diff := cmp.Diff(once("statefulset/web"), r.tally().since(before).withoutFence()); diff != "" {
		t.Errorf("rolled when --settle-max is over (-want +got):\n%s", diff)
	}

	change()
	actuator.settles(settle)
	if diff := cmp.Diff(tally{"statefulset/web": 2}, r.tally().since(before).withoutFence()); diff != "" {
		t.Errorf("rolled when the changes have ended (-want +got):\n%s", diff)
	}
	r.hasRolledForTheLast("statefulset/web", events.Source{Kind: events.KindSecret, Name: "db"})
}

// setImage changes the template of a Deployment.
func (r *rig) setImage(name, image string) {
	r.Helper()
	body := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, image)
	_, err := r.client.AppsV1().Deployments(r.namespace).Patch(r.Context(), name, types.StrategicMergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		r.Fatal(err)
	}
}

// lastEvent is the last event of a source of the namespace. While the disk is busy, reading it may take several attempts.
func (r *rig) lastEvent(source events.Source) (stored events.Stored) {
	r.Helper()
	source.Namespace = r.namespace
	bus := r.connect()
	var failed error
	testkit.Await(r.T, "the last event of "+source.String()+" can be read", func(context.Context) bool {
		stored, failed = bus.Last(r.Context(), events.Subject("demo", source))
		return failed == nil
	}, func() string { return fmt.Sprintf("the last attempt: %v", failed) })
	return stored
}

// lastChange is the last event of a source of the namespace, read.
func (r *rig) lastChange(source events.Source) events.Change {
	r.Helper()
	change, err := r.lastEvent(source).Change()
	if err != nil {
		r.Fatal(err)
	}
	return change
}

// hasRolledForTheLast shows that a workload, which reads all keys of a source, has the record of its last content.
func (r *rig) hasRolledForTheLast(workload string, source events.Source) {
	r.Helper()
	var record map[string]string
	annotation := r.workload(workload).Annotations["keyturn.dev/rolled"]
	if err := json.Unmarshal([]byte(annotation), &record); err != nil {
		r.Fatalf("the record of %s: %v", workload, err)
	}
	last := r.lastChange(source)
	if version := r.source(source.Kind, source.Name).GetResourceVersion(); last.ResourceVersion != version {
		r.Errorf("the last event of %s is of its resourceVersion %s, want %s", source, last.ResourceVersion, version)
	}
	fingerprint, _, _ := strings.Cut(record[source.String()], "@")
	if fingerprint != last.Fingerprint {
		r.Errorf("the record of %s for %s: got fingerprint %s, want that of the last event, %s", workload, source, fingerprint, last.Fingerprint)
	}
}
