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
	on   string
	read func(kind events.Kind, source string) func(*corev1.PodSpec)
	// waits marks a source that the pods cannot start without.
	waits bool
}{
	{name: "optional variables", kind: events.KindSecret, read: optionalAll},
	{name: "an optional variable", kind: events.KindConfigMap, read: optionalKey},
	{name: "optional files", kind: events.KindSecret, read: optionalFiles},
	{name: "a name that is not read", kind: events.KindSecret, on: "secret/a-name-that-is-not-read", read: readsNothing},
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

func TestSourcesThatComeAndGoRollWhoDidNotWaitForThem(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	all, optional := tally{}, tally{}
	for _, c := range comesAndGoes {
		w := workload{name: slug(c.name), on: "auto", read: c.read(c.kind, slug(c.name))}
		if c.on != "" {
			w.on = c.on
		}
		r.create(w)
		all[w.String()] = 1
		if !c.waits {
			optional[w.String()] = 1
		}
	}
	r.placeFence()
	r.start()
	write := func(value string) func() {
		return func() {
			for _, c := range comesAndGoes {
				r.write(c.kind, slug(c.name), map[string]string{"a": value, "b": value})
			}
		}
	}
	remove := func() {
		for _, c := range comesAndGoes {
			r.remove(c.kind, slug(c.name))
		}
	}

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

// createOptional creates the workloads that use sources that come and go, and returns those that do not wait for them.
func (r *rig) createOptional(prefix string) tally {
	r.Helper()
	optional := tally{}
	for _, c := range comesAndGoes {
		name := prefix + slug(c.name)
		w := workload{name: name, on: "auto", read: c.read(c.kind, name)}
		if c.on != "" {
			w.on = string(c.kind) + "/" + name
		}
		r.create(w)
		if !c.waits {
			optional[w.String()] = 1
		}
	}
	return optional
}

func (r *rig) createSources(prefix string) {
	r.Helper()
	for _, c := range comesAndGoes {
		r.write(c.kind, prefix+slug(c.name), map[string]string{"a": "one", "b": "one"})
	}
}

func TestAnAppThatIsInstalledAgainRollsWhoDidNotWaitForItsSources(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	r.placeFence()
	r.start()
	r.rollsNothing("the sources of the app are created", func() { r.createSources("") })
	r.rollsNothing("the app is removed", func() {
		for _, c := range comesAndGoes {
			r.remove(c.kind, slug(c.name))
		}
	})
	optional := r.createOptional("")
	r.passFence()
	r.rolls("the sources are created with the content that they had", optional, func() { r.createSources("") })

	r.rollsNothing("the sources of another app are created", func() { r.createSources("other-") })
	r.rollsNothing("the other app is removed", func() {
		for _, c := range comesAndGoes {
			r.remove(c.kind, "other-"+slug(c.name))
		}
	})
	optional = r.createOptional("other-")
	r.passFence()
	r.rolls("its sources are created with other content", optional, func() {
		for _, c := range comesAndGoes {
			r.write(c.kind, "other-"+slug(c.name), map[string]string{"a": "one", "b": "two"})
		}
	})
}

func TestSourcesThatAreCreatedWhileTheWatcherIsDownRollWhoDidNotWaitForThem(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	optional := r.createOptional("")
	r.placeFence()
	r.start()
	r.rollsNothing("nothing happens", func() {})
	r.stop(r.watcher)
	r.rolls("the sources are created before the watcher is back", optional, func() {
		r.createSources("")
		r.startWatcher()
	})
	r.rollsNothing("the watcher starts once more", func() {
		r.stop(r.watcher)
		r.startWatcher()
	})
}

func TestAFirstInstallationRollsWhoStartedBeforeItsSourcesWereCreated(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	r.createSources("early-")
	r.placeFence()
	r.awaitLaterSecond()
	r.createOptional("early-")
	late := r.createOptional("late-")
	r.awaitLaterSecond()
	r.createSources("late-")
	r.rolls("Keyturn is installed", late, r.start)
	r.rollsNothing("both programs start once more", func() {
		r.stop(r.watcher)
		r.stop(r.actuator)
		r.start()
	})
}

func TestAKeyThatGoesRollsWhoCanStartWithoutIt(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	r.write(events.KindSecret, "db", map[string]string{"a": "one", "b": "one"})
	r.create(workload{name: "all", on: "auto", read: readsAll(events.KindSecret, "db")})
	r.create(workload{name: "optional", on: "auto", read: optionalKey(events.KindSecret, "db")})
	r.create(workload{name: "required", on: "auto", read: requiredKey(events.KindSecret, "db")})
	r.placeFence()
	r.start()

	r.rolls("the key goes", once("statefulset/all", "statefulset/optional"), func() {
		r.unset(events.KindSecret, "db", "a")
	})
	r.rolls("the key comes back with other content", once("statefulset/all", "statefulset/optional", "statefulset/required"), func() {
		r.set(events.KindSecret, "db", "a", "two")
	})
	r.rolls("the key goes again", once("statefulset/all", "statefulset/optional"), func() {
		r.unset(events.KindSecret, "db", "a")
	})
	r.rolls("the key comes back as it was", once("statefulset/all", "statefulset/optional"), func() {
		r.set(events.KindSecret, "db", "a", "two")
	})
}
