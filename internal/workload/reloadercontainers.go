package workload

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// AnnotationReloadedFrom is Reloader's marker of its last roll, on the pod template. It is only compared with its earlier value.
const AnnotationReloadedFrom = "reloader.stakater.com/last-reloaded-from"

// ReloaderVariablePrefix is the prefix of Reloader's variables, which are only compared with their earlier values.
const ReloaderVariablePrefix = "STAKATER_"

// reloaderWords are the words for kinds of sources in Reloader's marker and variables. Reloader does not know other kinds.
var reloaderWords = map[events.Kind]string{
	events.KindSecret:              "SECRET",
	events.KindConfigMap:           "CONFIGMAP",
	events.KindSecretProviderClass: "SECRETPROVIDERCLASS",
}

// containers describes the containers of a pod template, without init containers, for patches that write Reloader's marker or variables.
type containers struct {
	list []container
	// readers maps each source to the first container that reads it, as an index into list.
	readers map[useKey]int
	// variables maps the names of Reloader's variables to their places.
	variables map[string]place
	// marker is the text of Reloader's marker, or nil if there is none.
	marker any
}

// container is one of the containers.
type container struct {
	name string
	// variables says that the container has a list of environment variables. first is the name of the first one, or nil if the list is empty.
	variables bool
	first     any
}

// place locates a variable: the indexes of the container and of the variable in it. value is its value, or nil if that is empty.
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
	// Like Reloader, prefer a container that mounts the source to one that reads it into a variable.
	for i := range spec.Volumes {
		if mounting := mountedBy(spec, spec.Volumes[i].Name); mounting >= 0 {
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

// reads records a container as the reader of the sources that have none yet.
func (c *containers) reads(i int, found uses) {
	for source := range found {
		if _, known := c.readers[source]; !known {
			c.readers[source] = i
		}
	}
}

// mountedBy returns the index of the first container that mounts a volume, or -1 if none does.
func mountedBy(spec *corev1.PodSpec, volume string) int {
	isMount := func(vm corev1.VolumeMount) bool { return vm.Name == volume }
	return slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return slices.ContainsFunc(c.VolumeMounts, isMount) })
}

// isReloaderVariable reports whether name has the form of the variables that Reloader writes.
func isReloaderVariable(name string) bool {
	for _, word := range reloaderWords {
		if strings.HasPrefix(name, ReloaderVariablePrefix) && strings.HasSuffix(name, "_"+word) {
			return true
		}
	}
	return false
}
