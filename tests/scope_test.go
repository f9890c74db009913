package tests

import (
	"context"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// The API server tells a watch with a selector of an object that is not selected any more as of one that is deleted.
func TestASelectorNarrowsTheSources(t *testing.T) {
	t.Parallel()
	const secret, tier = events.KindSecret, "example.com/tier"
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	for name, value := range map[string]string{"in": "web", "out": "data"} {
		r.write(secret, name, map[string]string{"password": "one"})
		r.label(secret, name, tier, value)
		r.create(workload{name: name, on: "auto", read: readsAll(secret, name)})
		r.create(workload{name: name + "-optional", on: "auto", read: optionalAll(secret, name)})
	}
	in, out := once("statefulset/in", "statefulset/in-optional"), once("statefulset/out", "statefulset/out-optional")
	r.placeFence()
	for _, kind := range []events.Kind{secret, events.KindConfigMap} {
		r.label(kind, "fence-"+string(kind), tier, "web")
	}
	r.startActuator()
	r.startWatcher("--selector", tier+"=web")

	r.rolls("sources change that are selected and not", in, func() {
		r.set(secret, "in", "password", "two")
		r.set(secret, "out", "password", "two")
	})
	// Younger pods count as new: the API server's times have no higher resolution.
	created := r.source(secret, "out").GetCreationTimestamp()
	r.eventually("the source is some seconds old", func(context.Context) bool { return time.Since(created.Time) > 4*time.Second })
	r.rollsNothing("a source comes into scope", func() { r.label(secret, "out", tier, "web") })
	r.rolls("the source changes", out, func() { r.set(secret, "out", "password", "three") })
	r.rollsNothing("the source changes out of scope", func() {
		r.label(secret, "out", tier, nil)
		r.passFence()
		r.set(secret, "out", "password", "four")
	})
	r.rolls("the source comes back changed", out, func() { r.label(secret, "out", tier, "web") })
}
