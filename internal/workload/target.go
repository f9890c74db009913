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
)

// target is a kind of custom resource that is rolled by configuration, because code for each operator would need its Go types and a release for each
// new one. The configuration is a file of the cluster's operator, not a custom resource, because its author extends the actuator's actions.
//
// A trigger is a single place, so that a patch can test it and a policy can allow it alone. CEL and full JSONPath can compute, so paths are a subset
// of JSONPath. The trigger's value takes the place of the pod template: it is unknown whether other changes of the spec replace pods, so a workload
// may roll once too often but not once too little. A field cannot contain the cause, so the revision is then on the object. Operators copy
// annotations to their workloads, so keyturn.dev/roll-on of an owner and of its workload are merged, and none on the owner wins.
type target struct {
	TargetConfig
	trigger targetTrigger
}

// targetManifest is the page about the permissions on a target.
const targetManifest = "docs/how-to/custom-resources.md"

// kind returns the kind in the table.
func (t target) kind() Kind {
	group, version, _ := strings.Cut(t.APIVersion, "/")
	return Kind{
		Name: t.Name, APIVersion: t.APIVersion, Title: t.Kind, Resource: t.Resource + "." + group, plural: t.Resource,
		Custom: true, Manifest: targetManifest,
		Example: &unstructured.Unstructured{Object: map[string]any{"apiVersion": t.APIVersion, "kind": t.Kind}},
		client: func(clients Clients, namespace string) Objects {
			resource := schema.GroupVersionResource{Group: group, Version: version, Resource: t.Resource}
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
	meta, of := &metaOnly.Meta, &targetParts{owned: t.Status.Owned}
	template, problem := t.podTemplate(object.Object)
	t.trigger.read(object.Object, template, of)
	named := make(uses)
	for _, r := range t.Reads {
		r.add(object.Object, named)
	}
	p := parts{
		meta: meta, template: template, progress: t.Status.progress(object.Object, meta.Generation, t.pods(object.Object)),
		reads: named.sorted(), exclude: t.excludes(meta.Name), problem: problem,
	}
	p.serving = len(t.Status.Done) > 0 && p.progress.State == Complete
	p.target, p.lastWrite = of, newestTouch(meta)
	p.restartAt, _ = of.trigger.(string)
	return p, true
}

// podTemplate returns the pod template, which is empty if the kind has none or if there is an error.
func (t target) podTemplate(object map[string]any) (*corev1.PodTemplateSpec, error) {
	template := &corev1.PodTemplateSpec{}
	values := t.Template.Values(object)
	if t.Template.Empty() || len(values) == 0 {
		return template, nil
	}
	fields, _ := values[0].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, template); err != nil {
		// The converter's error is dropped, because it may contain values.
		return &corev1.PodTemplateSpec{}, &itemError{annotation: t.Template.String(), problem: "is no pod template; what it reads is not known"}
	}
	return template, nil
}

// pods returns the desired number of pods, or 1 if it is unknown.
func (t target) pods(object map[string]any) int32 {
	text, ok := t.Replicas.Text(object)
	count, err := strconv.ParseInt(text, 10, 32)
	if !ok || err != nil {
		return 1
	}
	return int32(count)
}

// excludes returns rules for the sources that are ignored for the object with the given name.
func (t target) excludes(name string) []rule {
	var list []rule
	for _, item := range t.Ignores {
		r := rule{reason: Excluded, annotation: targetsFlag, item: item}
		if r.source(strings.ReplaceAll(item, nameOfObject, name)) == "" {
			list = append(list, r)
		}
	}
	return list
}

// add adds the sources that an object names.
func (r targetRead) add(object map[string]any, found uses) {
	kind := objectKind(r.Kind)
	for _, value := range r.Path.Values(object) {
		name, _ := r.Name.Text(value)
		use := Reference{Kind: kind, Name: name}
		if key, ok := r.Key.Text(value); ok && !r.Key.Empty() {
			use = oneKey(kind, name, key)
		}
		found.add(use, nil)
	}
}

// readTarget applies the parts that only objects of targets have.
func (w *Workload) readTarget(p parts, reading Reading) {
	of := w.target
	w.Refs = limited(merged(w.Refs, p.reads))
	w.OptIn.exclude = append(w.OptIn.exclude, p.exclude...)
	if p.problem != nil {
		w.Problems = append(w.Problems, p.problem)
	}
	of.said = w.Progress
	if of.owned && w.Revision != "" && w.Progress.State == Complete {
		w.Progress = w.Progress.is(Progressing, "it is the controller of no workload that is known")
		if len(reading.Unwatched) > 0 {
			// The workloads that it controls may be of these kinds. As Progressing, its rollout would seem to fail, and others would wait for it.
			w.Progress = w.Progress.is(Complete, fmt.Sprintf(
				"it was written; it is the controller of no workload that is known, but workloads of the kinds %s are not watched",
				strings.Join(reading.Unwatched, ", ")))
		}
	}
}

// holds reports whether an object passes the test. A missing field is not equal to anything.
func (t targetTest) holds(object map[string]any) bool {
	if t.Missing {
		return len(t.Path.Values(object)) == 0
	}
	want, known := t.Equals, true
	if !t.EqualsPath.Empty() {
		want, known = t.EqualsPath.Text(object)
	}
	return known && slices.Contains(t.Path.Texts(object), want)
}

// String describes the test. It contains no values of an object.
func (t targetTest) String() string {
	switch {
	case t.Missing:
		return fmt.Sprintf("%s is missing", t.Path)
	case !t.EqualsPath.Empty():
		return fmt.Sprintf("%s equals %s", t.Path, t.EqualsPath)
	}
	return fmt.Sprintf("%s is %q", t.Path, t.Equals)
}

// isObserved reports whether the rest of the status is about the newest spec.
func (s targetStatus) isObserved(object map[string]any, generation int64) bool {
	if !s.ObservedGeneration.Empty() {
		text, _ := s.ObservedGeneration.Text(object)
		if observed, err := strconv.ParseInt(text, 10, 64); err != nil || observed < generation {
			return false
		}
	}
	return !slices.ContainsFunc(s.Observed, func(t targetTest) bool {
		_, asked := t.EqualsPath.Text(object)
		return (asked || t.EqualsPath.Empty()) && !t.holds(object)
	})
}

// progress returns the progress of the rollout of an object with the given number of pods.
func (s targetStatus) progress(object map[string]any, generation int64, pods int32) Progress {
	p := Progress{Pods: pods}
	observed := s.isObserved(object, generation)
	for _, t := range s.Done {
		if observed && t.holds(object) {
			p.Done++
		}
	}
	// This comes first, because a suspended controller does not observe changes.
	for _, t := range s.Waiting {
		if t.holds(object) {
			return p.is(Waiting, t.String())
		}
	}
	if !observed {
		return p.unobserved()
	}
	for _, t := range s.Failed {
		if t.holds(object) {
			return p.is(Failed, t.String())
		}
	}
	for _, t := range s.Done {
		if !t.holds(object) {
			return p.is(Progressing, "waiting until "+t.String())
		}
	}
	if len(s.Done) == 0 && !s.Owned {
		return p.is(Complete, "it was written; nothing says how far its controller is")
	}
	return p.is(Complete, "")
}
