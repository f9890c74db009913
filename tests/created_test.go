package tests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// comesAndGoes are uses of sources that are not there at first.
var comesAndGoes = []struct {
	name string
	kind events.Kind
	read func(kind events.Kind, source string) func(*corev1.PodSpec)
	// isNamed marks a source that a workload asks for by its name.
	isNamed bool
	// waits marks a source that the pods cannot start without.
	waits bool
}{
	{name: "optional variables", kind: events.KindSecret, read: optionalAll},
	{name: "an optional variable", kind: events.KindConfigMap, read: optionalKey},
	{name: "optional files", kind: events.KindSecret, read: optionalFiles},
	{name: "a name that is not read", kind: events.KindSecret, isNamed: true, read: readsNothing},
	{name: "required variables", kind: events.KindConfigMap, read: readsAll, waits: true},
	{name: "a required variable", kind: events.KindSecret, read: requiredKey, waits: true},
	{name: "required files", kind: events.KindSecret, read: volume(files, ""), waits: true},
	{
		name: "an optional and a required use", kind: events.KindSecret, waits: true,
		read: func(kind events.Kind, source string) func(*corev1.PodSpec) {
			return both(optionalAll(kind, source), requiredKey(kind, source))
		},
	},
}

func optionalAll(kind events.Kind, source string) func(*corev1.PodSpec) {
	yes := true
	return inMain(func(c *corev1.Container) { c.EnvFrom = append(c.EnvFrom, envFrom(kind, source, &yes)) })
}

func optionalKey(kind events.Kind, source string) func(*corev1.PodSpec) {
	yes := true
	return inMain(func(c *corev1.Container) { c.Env = append(c.Env, env(kind, source, "a", &yes)) })
}

func optionalFiles(kind events.Kind, source string) func(*corev1.PodSpec) {
	yes := true
	return mounts(files(kind, source, &yes), "/files", "")
}

func requiredKey(kind events.Kind, source string) func(*corev1.PodSpec) {
	return readsKey(kind, source, "a")
}

// createOptional creates the workloads that use sources that come and go, whose names have a prefix, and returns all of them, and those that do not
// wait for their sources.
func (r *rig) createOptional(prefix string) (all, optional tally) {
	r.Helper()
	all, optional = tally{}, tally{}
	for _, c := range comesAndGoes {
		name := prefix + slug(c.name)
		w := workload{name: name, on: "auto", read: c.read(c.kind, name)}
		if c.isNamed {
			w.on = string(c.kind) + "/" + name
		}
		r.create(w)
		all[w.String()] = 1
		if !c.waits {
			optional[w.String()] = 1
		}
	}
	return all, optional
}

// writeSources writes the sources of the workloads with a prefix, whether they are there or not.
func (r *rig) writeSources(prefix, a, b string) {
	r.Helper()
	for _, c := range comesAndGoes {
		r.write(c.kind, prefix+slug(c.name), map[string]string{"a": a, "b": b})
	}
}

func (r *rig) removeSources(prefix string) {
	r.Helper()
	for _, c := range comesAndGoes {
		r.remove(c.kind, prefix+slug(c.name))
	}
}

func TestSourcesThatComeAndGoRollWhoDidNotWaitForThem(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	r.writeSources("early-", "one", "one")
	r.placeFence()
	r.awaitLaterSecond()
	all, optional := r.createOptional("")
	r.createOptional("early-")
	r.createOptional("late-")
	r.awaitLaterSecond()
	r.writeSources("late-", "one", "one")
	r.awaitLaterSecond()

	r.step("a first installation rolls nobody, also not who started before its sources were created", func(r *rig) {
		r.rollsNothing("Keyturn is installed", r.start)
		r.rollsNothing("both programs start once more", func() {
			r.stop(r.watcher)
			r.stop(r.actuator)
			r.start()
		})
	})
	r.step("sources that come and go roll who did not wait for them", func(r *rig) { r.seesSourcesComeAndGo(all, optional) })
	r.step("sources that are created while the watcher is down roll who did not wait for them", func(r *rig) {
		_, optional := r.createOptional("down-")
		r.passFence()
		r.stop(r.watcher)
		r.rolls("the sources are created before the watcher is back", optional, func() {
			r.writeSources("down-", "one", "one")
			r.startWatcher()
		})
		r.rollsNothing("the watcher starts once more", func() {
			r.stop(r.watcher)
			r.startWatcher()
		})
	})
}

// seesSourcesComeAndGo is for workloads that were created without their sources.
func (r *rig) seesSourcesComeAndGo(all, optional tally) {
	r.Helper()
	write := func(value string) func() { return func() { r.writeSources("", value, value) } }
	remove := func() { r.removeSources("") }
	r.rolls("the sources are created", optional, write("one"))
	r.rollsNothing("the sources are deleted", remove)
	r.rollsNothing("the sources are created with the content that they had", write("one"))
	r.rollsNothing("the sources are deleted again", remove)
	r.rolls("the sources are created with other content", all, write("two"))
	r.rollsNothing("the sources are deleted and created at once", func() {
		remove()
		write("two")()
	})
}
