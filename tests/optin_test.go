package tests

import (
	"cmp"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
)

// Each case has its own workload, and its own source with the keys "a" and "b", of which "a" changes. In annotations "$" is
// the name of the case, and "$-source" that of the source.
type optIn struct {
	name string
	// kind is that of the source. Empty means Secret.
	kind events.Kind
	// workload, template and source are annotations.
	workload, template, source map[string]string
	// read makes the pod spec read the source. Nil: all of its keys.
	read  func(kind events.Kind, source string) func(*corev1.PodSpec)
	rolls bool
}

var optIns = []optIn{
	{name: "nothing is asked for"},
	{name: "auto", workload: rollOn("auto"), rolls: true},
	{name: "auto and not read", workload: rollOn("auto"), read: readsNothing},
	{name: "auto on the template", template: rollOn("auto"), rolls: true},
	{name: "none over auto of Reloader", workload: merge(rollOn("none"), reloader("auto", "true"))},
	{name: "secrets and a Secret", workload: rollOn("secrets"), rolls: true},
	{name: "secrets and a ConfigMap", workload: rollOn("secrets"), kind: events.KindConfigMap},
	{name: "configmaps and a ConfigMap", workload: rollOn("configmaps"), kind: events.KindConfigMap, rolls: true},
	{name: "a name", workload: rollOn("secret/$-source"), read: readsNothing, rolls: true},
	{name: "a name of the other kind", workload: rollOn("configmap/$-source")},
	{name: "a pattern", workload: rollOn("configmap/$-*"), kind: events.KindConfigMap, read: readsNothing, rolls: true},
	{name: "a pattern of a part", workload: rollOn("secret/$-s?"), read: readsNothing},
	{name: "a key", workload: rollOn("secret/$-source#a"), rolls: true},
	{name: "a key that is not read from a source that is not", workload: rollOn("secret/$-source#a"), read: readsNothing, rolls: true},
	{name: "another key", workload: rollOn("secret/$-source#b")},
	{name: "a key and another is read", workload: rollOn("secret/$-source#a"), read: readsB},
	{name: "every key and another is read", workload: rollOn("secret/$-source#*"), read: readsB, rolls: true},
	{name: "auto without another source", workload: rollOn("auto, !secret/another"), rolls: true},
	{name: "auto without the source", workload: rollOn("auto, !secret/$-source")},
	{name: "auto without a pattern", workload: rollOn("!secret/$-*, auto")},
	{name: "a name and without it", workload: rollOn("secret/$-source, !secret/$-source")},
	{name: "a name beside what cannot be read", workload: rollOn("secret/$-source, secret/UPPER, everything"), rolls: true},
	{name: "only what cannot be read", workload: rollOn("everything")},
	{name: "an ignored source", workload: rollOn("auto"), source: map[string]string{"keyturn.dev/ignore": "true"}},
	{name: "a source that is not ignored", workload: rollOn("auto"), source: map[string]string{"keyturn.dev/ignore": "false"}, rolls: true},
	{name: "auto and only pulls", workload: rollOn("auto"), read: readsByPull},
	{name: "a name that only pulls use", workload: rollOn("secret/$-source"), read: readsByPull, rolls: true},

	// What Reloader's annotations mean is in tests/reloader.
	{
		name:     "Reloader exclude over auto of ours",
		workload: merge(rollOn("auto"), map[string]string{"secrets.exclude.reloader.stakater.com/reload": "$-source"}),
	},
	{name: "Reloader beside ours", workload: merge(rollOn("configmaps"), map[string]string{"secret.reloader.stakater.com/auto": "true"}), rolls: true},
}

func rollOn(items string) map[string]string { return map[string]string{"keyturn.dev/roll-on": items} }

func reloader(annotation, value string) map[string]string {
	return map[string]string{"reloader.stakater.com/" + annotation: value}
}

func merge(annotations ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, some := range annotations {
		maps.Copy(all, some)
	}
	return all
}

func readsNothing(events.Kind, string) func(*corev1.PodSpec) { return func(*corev1.PodSpec) {} }

func readsB(kind events.Kind, source string) func(*corev1.PodSpec) {
	return readsKey(kind, source, "b")
}

func readsByPull(_ events.Kind, source string) func(*corev1.PodSpec) { return pulls(source) }

// create creates the source and the workload, which it returns.
func (c optIn) create(r *rig) workload {
	r.Helper()
	name := slug(c.name)
	named := func(annotations map[string]string) map[string]string {
		all := map[string]string{}
		for annotation, value := range annotations {
			all[annotation] = strings.ReplaceAll(value, "$", name)
		}
		return all
	}
	read := readsAll
	if c.read != nil {
		read = c.read
	}
	source := c.subject()
	r.write(source.Kind, source.Name, map[string]string{"a": "one", "b": "one"})
	for annotation, value := range c.source {
		r.annotate(source.Kind, source.Name, annotation, value)
	}
	w := workload{name: name, annotations: named(c.workload), template: named(c.template), read: read(source.Kind, source.Name)}
	r.create(w)
	return w
}

// subject is the source.
func (c optIn) subject() events.Source {
	return events.Source{Kind: cmp.Or(c.kind, events.KindSecret), Name: slug(c.name) + "-source"}
}

func TestAWorkloadRollsOnWhatItAsksForAndOnNothingElse(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "100ms"}})
	want := tally{}
	for _, c := range optIns {
		if w := c.create(r); c.rolls {
			want[w.String()] = 1
		}
	}
	r.placeFence()
	r.start()

	r.rolls("a key of every source is changed", want, func() {
		for _, c := range optIns {
			r.set(c.subject().Kind, c.subject().Name, "a", "two")
		}
	})
}
