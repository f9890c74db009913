package workload

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// maxReferences is how many sources of one workload count. A variable may name tens of thousands of secrets in a store.
const maxReferences = 1000

// Reference describes how a pod spec uses one source, with all uses merged.
type Reference struct {
	Kind events.Kind
	Name string
	// Keys are the data keys that the pods read, sorted and without duplicates. Nil means all of them, including keys added later.
	Keys []string
	// Required are the data keys without which the pods do not start, sorted and without duplicates: those of uses that are not optional.
	Required []string
	// Optional means that pods start without the source. Otherwise, they have waited for it and read its first content.
	Optional bool
	// ByPull means that the source is used only to pull images. Each pull reads it again.
	ByPull bool
}

// referenceTo returns the reference to a source among those of a workload in a namespace, or nil if there is none.
func referenceTo(source events.Source, refs []Reference, namespace string) *Reference {
	for i := range refs {
		if ref := &refs[i]; RefersTo(ref.Kind, ref.Name, source) && SourceNamed(ref.Kind, namespace, "").Namespace == source.Namespace {
			return ref
		}
	}
	return nil
}

// isLike reports whether both have the same effect on a workload. Pods that can start without a source are affected differently if it is missing.
func (r Reference) isLike(other Reference) bool {
	return r.Kind == other.Kind && r.Name == other.Name && r.ByPull == other.ByPull && r.Optional == other.Optional &&
		(r.Keys == nil) == (other.Keys == nil) && slices.Equal(r.Keys, other.Keys) && slices.Equal(r.Required, other.Required)
}

// limited returns the first references, at most maxReferences.
func limited(list []Reference) []Reference {
	if len(list) <= maxReferences {
		return list
	}
	return slices.Clone(list[:maxReferences])
}

// References returns the references of a pod template, sorted by kind and name, at most maxReferences. If in doubt, it assumes that pods read a
// source: a volume that no container mounts counts as mounted as a whole, although pods start without it. An image pull adds nothing to other uses.
func References(template *corev1.PodTemplateSpec) []Reference {
	spec, found, mounted := &template.Spec, make(uses), make(mounts)
	read := func(c *corev1.Container) {
		found.container(c)
		mounted.container(c)
	}
	for i := range spec.InitContainers {
		read(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		read(&spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		read((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	found.injected(template)
	for _, isMounted := range []bool{true, false} {
		for i := range spec.Volumes {
			if read := mounted[spec.Volumes[i].Name]; read.isAny() == isMounted {
				found.volume(&spec.Volumes[i].VolumeSource, read)
			}
		}
	}
	for _, pull := range spec.ImagePullSecrets {
		found.pull(pull.Name)
	}
	return limited(found.sorted())
}

// uses collects references by source.
type uses map[useKey]*Reference

type useKey struct {
	kind events.Kind
	name string
}

// add merges one use.
func (u uses) add(use Reference, optional *bool) {
	if use.Name == "" {
		return
	}
	if optional != nil && *optional {
		use.Optional, use.Required = true, nil
	}
	key := useKey{use.Kind, use.Name}
	ref, known := u[key]
	if !known {
		u[key] = &use
		return
	}
	ref.Optional = ref.Optional && use.Optional
	ref.Required = append(ref.Required, use.Required...)
	if ref.Keys == nil || use.Keys == nil {
		ref.Keys = nil
		return
	}
	ref.Keys = append(ref.Keys, use.Keys...)
}

// addUnmounted merges a use through a volume that no container mounts. The kubelet does not set up such a volume, so pods start without its keys.
// Call it after all other uses are added, except for image pulls.
func (u uses) addUnmounted(use Reference, optional *bool) {
	use.Required = nil
	if _, known := u[useKey{use.Kind, use.Name}]; known {
		optional = new(true)
	}
	u.add(use, optional)
}

// pull adds an image pull. Call it after all other uses are added.
func (u uses) pull(name string) {
	key := useKey{events.KindSecret, name}
	if _, known := u[key]; known || name == "" {
		return
	}
	u[key] = &Reference{Kind: events.KindSecret, Name: name, ByPull: true}
}

func (u uses) container(c *corev1.Container) {
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from == nil {
			continue
		}
		if ref := from.SecretKeyRef; ref != nil {
			u.add(oneKey(events.KindSecret, ref.Name, ref.Key), ref.Optional)
		}
		if ref := from.ConfigMapKeyRef; ref != nil {
			u.add(oneKey(events.KindConfigMap, ref.Name, ref.Key), ref.Optional)
		}
	}
	for i := range c.EnvFrom {
		// A prefix is prepended to the names of the variables; it selects no keys.
		if ref := c.EnvFrom[i].SecretRef; ref != nil {
			u.add(Reference{Kind: events.KindSecret, Name: ref.Name}, ref.Optional)
		}
		if ref := c.EnvFrom[i].ConfigMapRef; ref != nil {
			u.add(Reference{Kind: events.KindConfigMap, Name: ref.Name}, ref.Optional)
		}
	}
}

func oneKey(kind events.Kind, name, key string) Reference {
	return Reference{Kind: kind, Name: name, Keys: []string{key}, Required: []string{key}}
}

// merged returns the references of several lists, with each source once.
func merged(lists ...[]Reference) []Reference {
	all, found := slices.Concat(lists...), make(uses)
	for _, ref := range all {
		if !ref.ByPull {
			// The lists belong to snapshots, which must not change.
			ref.Keys, ref.Required = slices.Clone(ref.Keys), slices.Clone(ref.Required)
			found.add(ref, nil)
		}
	}
	for _, ref := range all {
		if ref.ByPull {
			found.pull(ref.Name)
		}
	}
	return found.sorted()
}

func (u uses) sorted() []Reference {
	list := make([]Reference, 0, len(u))
	for _, ref := range u {
		slices.Sort(ref.Keys)
		slices.Sort(ref.Required)
		ref.Keys, ref.Required = slices.Compact(ref.Keys), slices.Compact(ref.Required)
		list = append(list, *ref)
	}
	slices.SortFunc(list, func(a, b Reference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list
}
