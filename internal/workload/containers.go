package workload

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// containers is what a patch has to know of the containers of a pod template to write as Reloader does. Init containers are not among them:
// Reloader writes none.
type containers struct {
	list []container
	// readers are the first containers that read each source, as indexes of the list. Sources that only an init container reads are
	// missing, as those that nobody reads.
	readers map[useKey]int
	// variables are where the variables of Reloader are.
	variables map[string]place
	// marker is the text of Reloader's marker. Nil: there is none.
	marker any
}

// container is one of the containers.
type container struct {
	name string
	// variables says that it has a list of environment variables, and first is the name of the first of them, nil if there is none.
	variables bool
	first     any
}

// place is where a variable is: in which container, and where among its variables. Value is the variable's value, nil if that is empty.
type place struct {
	container, variable int
	value               any
}

// containersOf reads the containers of a pod template.
func containersOf(template *corev1.PodTemplateSpec) *containers {
	c := &containers{readers: make(map[useKey]int), variables: make(map[string]place)}
	if text, ok := template.Annotations[AnnotationReloadedFrom]; ok {
		c.marker = text
	}
	spec := &template.Spec
	for i := range spec.Containers {
		c.add(i, &spec.Containers[i])
	}
	// Like Reloader: a container with the file is taken before one with a variable.
	for i := range spec.Volumes {
		if mounting, ok := mountedBy(spec, spec.Volumes[i].Name); ok {
			found := make(uses)
			found.volume(&spec.Volumes[i].VolumeSource, mount{})
			c.reads(mounting, found)
		}
	}
	for i := range spec.Containers {
		found := make(uses)
		found.container(&spec.Containers[i])
		c.reads(i, found)
	}
	return c
}

func (c *containers) add(i int, spec *corev1.Container) {
	added := container{name: spec.Name, variables: spec.Env != nil}
	for j := range spec.Env {
		name := spec.Env[j].Name
		if j == 0 {
			added.first = name
		}
		if _, known := c.variables[name]; !known && isReloaderVariable(name) {
			at := place{container: i, variable: j}
			if value := spec.Env[j].Value; value != "" {
				at.value = value
			}
			c.variables[name] = at
		}
	}
	c.list = append(c.list, added)
}

// reads notes that a container reads sources, of those that no other is known to read.
func (c *containers) reads(i int, found uses) {
	for source := range found {
		if _, known := c.readers[source]; !known {
			c.readers[source] = i
		}
	}
}

// mountedBy returns the first container that mounts a volume.
func mountedBy(spec *corev1.PodSpec, volume string) (int, bool) {
	for i := range spec.Containers {
		for _, vm := range spec.Containers[i].VolumeMounts {
			if vm.Name == volume {
				return i, true
			}
		}
	}
	return 0, false
}

// isReloaderVariable reports whether a variable is called as those are that Reloader writes.
func isReloaderVariable(name string) bool {
	if !strings.HasPrefix(name, ReloaderVariablePrefix) {
		return false
	}
	for _, word := range reloaderWords {
		if strings.HasSuffix(name, "_"+word) {
			return true
		}
	}
	return false
}
