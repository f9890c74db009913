package tests

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// placeCreated creates a workload that can start without its Secret, one that cannot, and one that only names it. It returns all of them, and
// those that can.
func (r *rig) placeCreated() (all, optional tally) {
	r.Helper()
	r.create(workload{name: "optional", on: "auto", read: optionalAll(events.KindSecret, "db")})
	r.create(workload{name: "required", on: "auto", read: readsAll(events.KindSecret, "db")})
	r.create(workload{name: "named", on: "secret/db", read: readsNothing(events.KindSecret, "db")})
	r.placeFence()
	return once("statefulset/optional", "statefulset/required", "statefulset/named"), once("statefulset/optional", "statefulset/named")
}

func TestAlwaysRollingOnCreationRollsOnceForEachObject(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms", "--roll-on-create", "always"}})
	all, optional := r.placeCreated()
	r.write(events.KindConfigMap, "early", map[string]string{"a": "one"})
	r.create(workload{name: "early", on: "auto", read: optionalAll(events.KindConfigMap, "early")})
	r.rollsNothing("Keyturn is installed", r.start)

	db := func(value string) { r.write(events.KindSecret, "db", map[string]string{"a": value}) }
	r.rolls("the Secret is created", optional, func() { db("one") })
	r.rollsNothing("it is deleted", func() { r.remove(events.KindSecret, "db") })
	r.rolls("it is created with the content that it had", all, func() { db("one") })
	r.rolls("it is deleted and created at once", all, func() {
		r.remove(events.KindSecret, "db")
		db("one")
	})
	r.rollsNothing("both programs start once more", func() {
		r.stop(r.watcher)
		r.stop(r.actuator)
		r.start()
	})
	r.rolls("it changes", all, func() { db("two") })
}

func TestNeverRollingOnCreationRollsForTheNextChange(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms", "--roll-on-create", "never"}})
	all, _ := r.placeCreated()
	r.start()

	db := func(value string) { r.write(events.KindSecret, "db", map[string]string{"a": value}) }
	r.rollsNothing("the Secret is created", func() { db("one") })
	r.rolls("it changes", all, func() { db("two") })
	r.rollsNothing("it is deleted", func() { r.remove(events.KindSecret, "db") })
	r.rollsNothing("it is created with the content that it had", func() { db("two") })
	r.rollsNothing("it is deleted again", func() { r.remove(events.KindSecret, "db") })
	r.rolls("it is created with other content", all, func() { db("three") })
}
