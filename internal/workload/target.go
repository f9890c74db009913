package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/fieldpath"
)

// target is a kind of custom resource that is rolled by configuration. See docs/adr/0030-custom-resources-are-targets-by-configuration.md.
type target struct {
	config             TargetConfig
	name               string
	template, replicas fieldpath.Path
	reads              []targetRead
	trigger            targetTrigger
	status             targetStatus
}

// targetParts has the parts that only objects of targets have.
type targetParts struct {
	// refs are what the object reads.
	refs []Reference
	// exclude has the sources that the configuration ignores.
	exclude  []rule
	problems []error
	// trigger is the value of the trigger, if that is a field. missing are the JSON pointers of objects that are missing on the path to it, the
	// outermost first. traced says that it has the trace context of an earlier roll.
	trigger any
	missing []string
	traced  bool
	// triggered says that the trigger is a fixed text, and that the text is still there.
	triggered bool
	// owned is TargetStatusConfig.Owned. said is the progress according to the object's own status, regardless of what it owns.
	owned bool
	said  Progress
}

// targetManifest is the page that says how to grant the permissions on a target.
const targetManifest = "docs/targets.md"

// kind returns the kind in the table.
func (t target) kind() Kind {
	c := t.config
	group, version, _ := strings.Cut(c.APIVersion, "/")
	return Kind{
		Name: t.name, APIVersion: c.APIVersion, Title: c.Kind, Resource: c.Resource + "." + group, plural: c.Resource,
		Component: "targets", Manifest: targetManifest,
		Example: &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.APIVersion, "kind": c.Kind}},
		client: func(clients Clients, namespace string) Objects {
			resource := schema.GroupVersionResource{Group: group, Version: version, Resource: c.Resource}
			return custom(clients.Dynamic.Resource(resource).Namespace(namespace))
		},
		read: t.read, strategy: t.trigger.strategy(),
	}
}

func (t target) read(obj runtime.Object) (parts, bool) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return parts{}, false
	}
	var metaOnly struct {
		Meta metav1.ObjectMeta `json:"metadata"`
	}
	fields := map[string]any{"metadata": object.Object["metadata"]}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &metaOnly); err != nil {
		return parts{}, false
	}
	meta, of := &metaOnly.Meta, &targetParts{owned: t.status.owned}
	template := t.podTemplate(object.Object, of)
	t.trigger.read(object.Object, template, of)
	named := make(uses)
	for _, r := range t.reads {
		r.add(object.Object, named)
	}
	of.refs, of.exclude = limited(merged(references(template), named.sorted())), t.excludes(meta.Name)
	p := parts{meta: meta, template: template, progress: t.status.progress(object.Object, meta.Generation, t.pods(object.Object))}
	p.serving = len(t.status.done) > 0 && p.progress.State == Complete
	p.target, p.touched = of, newestTouch(meta)
	p.restartAt, _ = of.trigger.(string)
	return p, true
}

// podTemplate returns the pod template, which is empty if the kind has none.
func (t target) podTemplate(object map[string]any, of *targetParts) *corev1.PodTemplateSpec {
	template := &corev1.PodTemplateSpec{}
	if t.template.Empty() {
		return template
	}
	values := t.template.Values(object)
	if len(values) == 0 {
		return template
	}
	fields, _ := values[0].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, template); err != nil {
		*template = corev1.PodTemplateSpec{}
		// The error of the converter is dropped: it may quote values.
		of.problems = append(of.problems, &itemError{annotation: t.template.String(), problem: "is no pod template; what it reads is not known"})
	}
	return template
}

// pods returns the desired number of pods, or 1 if it is not known.
func (t target) pods(object map[string]any) int32 {
	text, ok := t.replicas.Text(object)
	count, err := strconv.ParseInt(text, 10, 32)
	if !ok || err != nil {
		return 1
	}
	return int32(count)
}

// excludes returns rules for the sources that are ignored for the object with the given name.
func (t target) excludes(name string) []rule {
	var list []rule
	for _, item := range t.config.Ignores {
		r := rule{reason: Excluded, annotation: targetsFlag, item: item}
		if r.source(strings.ReplaceAll(item, nameOfObject, name)) == "" {
			list = append(list, r)
		}
	}
	return list
}

// targetRead is where an object names sources.
type targetRead struct {
	kind            events.Kind
	path, name, key fieldpath.Path
}

// add adds what an object names.
func (r targetRead) add(object map[string]any, found uses) {
	for _, value := range r.path.Values(object) {
		name, _ := r.name.Text(value)
		use := Reference{Kind: r.kind, Name: name}
		if key, ok := r.key.Text(value); ok && !r.key.Empty() {
			use = oneKey(r.kind, name, key)
		}
		found.add(use, nil)
	}
}

// readTarget applies the parts that only objects of targets have.
func (w *Workload) readTarget(reading Reading) {
	of := w.target
	w.Refs = of.refs
	w.OptIn.exclude = append(w.OptIn.exclude, of.exclude...)
	w.Problems = append(w.Problems, of.problems...)
	of.said = w.Progress
	if of.owned && w.Revision != "" && w.Progress.State == Complete {
		w.Progress = w.Progress.is(Progressing, "it is the controller of no workload that is known")
		if len(reading.Unwatched) > 0 {
			// The workloads that it controls may be of these kinds. Its rollout would seem to have failed, and others would wait for it.
			w.Progress = w.Progress.is(Complete, fmt.Sprintf(
				"it was written; it is the controller of no workload that is known, but workloads of the kinds %s are not watched",
				strings.Join(reading.Unwatched, ", ")))
		}
	}
}

// targetStatus says how a controller reports its progress with an object of a target.
type targetStatus struct {
	generation                      fieldpath.Path
	observed, done, failed, waiting []targetTest
	owned                           bool
}

// targetTest tests that a field equals a text or another field, or that it is missing.
type targetTest struct {
	path   fieldpath.Path
	equals string
	other  fieldpath.Path
	// missing requires that the field does not exist.
	missing bool
}

// holds reports whether an object passes the test. A missing field equals nothing.
func (t targetTest) holds(object map[string]any) bool {
	if t.missing {
		return len(t.path.Values(object)) == 0
	}
	want, known := t.equals, true
	if !t.other.Empty() {
		want, known = t.other.Text(object)
	}
	return known && slices.Contains(t.path.Texts(object), want)
}

// String says what the test requires. It quotes nothing of an object.
func (t targetTest) String() string {
	switch {
	case t.missing:
		return fmt.Sprintf("%s is missing", t.path)
	case !t.other.Empty():
		return fmt.Sprintf("%s equals %s", t.path, t.other)
	}
	return fmt.Sprintf("%s is %q", t.path, t.equals)
}

// isObserved reports whether the rest of the status is about the newest spec.
func (s targetStatus) isObserved(object map[string]any, generation int64) bool {
	if !s.generation.Empty() {
		text, _ := s.generation.Text(object)
		if observed, err := strconv.ParseInt(text, 10, 64); err != nil || observed < generation {
			return false
		}
	}
	return !slices.ContainsFunc(s.observed, func(t targetTest) bool {
		_, asked := t.other.Text(object)
		return (asked || t.other.Empty()) && !t.holds(object)
	})
}

// progress returns the progress of the rollout of an object with the given number of pods.
func (s targetStatus) progress(object map[string]any, generation int64, pods int32) Progress {
	p := Progress{Pods: pods}
	observed := s.isObserved(object, generation)
	for _, t := range s.done {
		if observed && t.holds(object) {
			p.Done++
		}
	}
	// This comes first, because a suspended controller observes nothing.
	for _, t := range s.waiting {
		if t.holds(object) {
			return p.is(Waiting, t.String())
		}
	}
	if !observed {
		return p.unobserved()
	}
	for _, t := range s.failed {
		if t.holds(object) {
			return p.is(Failed, t.String())
		}
	}
	for _, t := range s.done {
		if !t.holds(object) {
			return p.is(Progressing, "waiting until "+t.String())
		}
	}
	if len(s.done) == 0 && !s.owned {
		return p.is(Complete, "it was written; nothing says how far its controller is")
	}
	return p.is(Complete, "")
}
