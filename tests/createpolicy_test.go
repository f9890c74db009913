package tests

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// placeCreated creates a workload that can start without its Secret, one that cannot, and one that only names it, all with a prefix to their names. It
// returns all of them, and those that can.
func (r *rig) placeCreated(prefix string) (all, optional tally) {
	r.Helper()
	secret := prefix + "db"
	r.create(workload{name: prefix + "optional", on: "auto", read: optionalAll(events.KindSecret, secret)})
	r.create(workload{name: prefix + "required", on: "auto", read: readsAll(events.KindSecret, secret)})
	r.create(workload{name: prefix + "named", on: "secret/" + secret, read: readsNothing(events.KindSecret, secret)})
	named := "statefulset/" + prefix
	return once(named+"optional", named+"required", named+"named"), once(named+"optional", named+"named")
}

func TestACreationRollsAsTheSettingSays(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms", "--roll-on-create", "always"}})
	r.placeFence()
	all, optional := r.placeCreated("")
	r.write(events.KindConfigMap, "early", map[string]string{"a": "one"})
	r.create(workload{name: "early", on: "auto", read: optionalAll(events.KindConfigMap, "early")})

	r.step("always rolls once for each object", func(r *rig) {
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
	})
	r.step("never rolls for the next change", func(r *rig) {
		r.rollsNothing("the actuator starts with another setting", func() {
			r.stop(r.actuator)
			r.startActuator("--roll-on-create", "never")
		})
		all, _ := r.placeCreated("never-")
		r.passFence()
		db := func(value string) { r.write(events.KindSecret, "never-db", map[string]string{"a": value}) }
		r.rollsNothing("the Secret is created", func() { db("one") })
		r.rolls("it changes", all, func() { db("two") })
		r.rollsNothing("it is deleted", func() { r.remove(events.KindSecret, "never-db") })
		r.rollsNothing("it is created with the content that it had", func() { db("two") })
		r.rollsNothing("it is deleted again", func() { r.remove(events.KindSecret, "never-db") })
		r.rolls("it is created with other content", all, func() { db("three") })
	})
}
