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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestChangesThatComeTogetherMakeOneRollout(t *testing.T) {
	t.Parallel() // most of it is waiting until it is quiet
	// Far longer than the pauses of a test on a slow machine.
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "10s", "--settle-max", "30s"}})
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
	r.start()
	before := r.tally()
	r.set(secret, "rolled", "password", "B")
	r.eventually("one of them has rolled before", func(context.Context) bool {
		return r.tally().since(before).covers(once("statefulset/rolled"))
	})

	want := once("deployment/burst", "statefulset/pair", "statefulset/forth")
	// Its own change of the template, for the record that it needs no other leaves the template alone; then its own change and
	// a roll, for its pods may have been made before the ConfigMap was changed.
	maps.Copy(want, tally{"deployment/release": 1, "deployment/late": 2})
	r.rolls("changes that come together", want, func() {
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
	})

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
	t.Parallel() // most of it is waiting until it is quiet
	// Far longer than the pauses of a test on a slow machine.
	const settle, most = 10 * time.Second, 12 * time.Second
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", settle.String(), "--settle-max", most.String()}})
	r.write(events.KindSecret, "db", map[string]string{"password": "none"})
	r.create(workload{name: "web", on: "auto", read: readsAll(events.KindSecret, "db")})
	r.placeFence()
	r.start()

	// Once while the changes go on, and once when they have ended.
	r.rolls("changes that do not end", tally{"statefulset/web": 2}, func() {
		change := func() {
			r.set(events.KindSecret, "db", "password", strconv.FormatInt(time.Now().UnixNano(), 10))
		}
		before, started := r.tally(), time.Now()
		r.eventually("it rolls although the changes go on", func(context.Context) bool {
			change()
			return r.tally().since(before).covers(once("statefulset/web"))
		})
		if waited := time.Since(started); waited < most {
			t.Errorf("it rolled after %s, want the %s of --settle-max or more: it was never quiet for --settle", waited, most)
		}
		change()
	})
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
