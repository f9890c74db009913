package workload

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// InPlace is how the pods of a workload are asked to reload instead of being replaced.
type InPlace struct {
	Endpoint Endpoint
	// Selector is the label selector of the pods, and Controller the UID of their controller. Controller is empty if they belong to ReplicaSets.
	Selector, Controller string

	// refused says why the pods cannot be asked to reload at all. Empty if they can.
	refused string
	// files has, for each source that the pods read, the reason why a running pod does not see it change. The reason is empty for files that
	// the kubelet refreshes.
	files map[useKey]string
}

// Refuses returns why running pods do not see a change of a source, for people. It is empty if they do, once the kubelet has refreshed
// their files.
func (p *InPlace) Refuses(source events.Source) string {
	if p.refused != "" {
		return p.refused
	}
	why, known := p.files[useKey{source.Kind, source.Name}]
	if !known {
		why = "is not mounted"
	}
	if why == "" {
		return ""
	}
	return source.String() + " " + why
}

// Why a running pod does not see a change.
const (
	readAsEnvironment = "is read as environment"
	readWithSubPath   = "is mounted with subPath"
	readByInit        = "is read by an init container"
	readByDriver      = "is read by a volume driver"
	readByPull        = "is read to pull images"
)

// readInPlace reads AnnotationReload.
func (w *Workload) readInPlace(on map[string]string, p parts, reading Reading) {
	text, ok := on[AnnotationReload]
	if !ok {
		return
	}
	fail := func(problem string) {
		w.Problems = append(w.Problems, &itemError{annotation: AnnotationReload, problem: problem + ". The workload rolls instead"})
	}
	endpoint, err := parseEndpoint(text)
	switch {
	case err != nil:
		fail(err.Error())
		return
	case !reading.InPlace:
		fail("is not allowed with these flags, without --reload-in-place")
		return
	case p.selector == nil:
		fail("is for a Deployment, a StatefulSet or a DaemonSet, whose pods can be found")
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(p.selector)
	if err != nil || selector.Empty() {
		fail("needs a selector of the pods")
		return
	}
	w.InPlace = &InPlace{Endpoint: endpoint, Selector: selector.String(), files: filesOf(&p.template.Spec)}
	if w.ID.Kind != deployments.Name {
		w.InPlace.Controller = w.ID.UID
	}
	if p.template.Spec.HostNetwork {
		w.InPlace.refused = "the pods have the network of their node, whose address is not theirs"
	}
}

// filesOf returns, for each source that the pods of a spec read, why a running pod does not see it change.
func filesOf(spec *corev1.PodSpec) map[useKey]string {
	files, mounted := make(readFiles), make(map[string]string)
	for i := range spec.InitContainers {
		files.container(&spec.InitContainers[i], readByInit, mounted)
	}
	for i := range spec.Containers {
		files.container(&spec.Containers[i], "", mounted)
	}
	for i := range spec.EphemeralContainers {
		files.container((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon), "", mounted)
	}
	for i := range spec.Volumes {
		volume := &spec.Volumes[i]
		why, known := mounted[volume.Name]
		switch {
		case volume.Secret == nil && volume.ConfigMap == nil && volume.Projected == nil:
			files.volume(volume, readByDriver)
		case known:
			files.volume(volume, why)
		}
	}
	for _, pull := range spec.ImagePullSecrets {
		use := useKey{events.KindSecret, pull.Name}
		if _, known := files[use]; !known {
			files[use] = readByPull
		}
	}
	return files
}

// readFiles maps each source that pods read to the reason why a running pod does not see it change. The reason is empty if it does.
type readFiles map[useKey]string

// container adds what a container reads as environment variables, and records in mounted how it mounts volumes. Why is the reason why it does
// not see changes of what it mounts, empty if it does.
func (f readFiles) container(c *corev1.Container, why string, mounted map[string]string) {
	env := make(uses)
	env.container(c)
	for use := range env {
		f[use] = readAsEnvironment
	}
	for _, vm := range c.VolumeMounts {
		switch before := mounted[vm.Name]; {
		case vm.SubPathExpr != "" || path.Clean(vm.SubPath) != ".":
			mounted[vm.Name] = readWithSubPath
		case before == "":
			mounted[vm.Name] = why
		}
	}
}

// volume adds the sources of a volume. One reason for each source is enough.
func (f readFiles) volume(v *corev1.Volume, why string) {
	found := make(uses)
	found.volume(&v.VolumeSource, mount{})
	for use := range found {
		if f[use] == "" {
			f[use] = why
		}
	}
}
