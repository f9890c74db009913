package workload

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// InPlace describes how the pods of a workload are asked to reload instead of being replaced.
type InPlace struct {
	Endpoint Endpoint
	// Selector is the label selector of the pods, and Controller the UID of their controller. Controller is empty if they belong to ReplicaSets.
	Selector, Controller string

	// refused is why the pods cannot be asked to reload, empty if they can.
	refused string
	// files contains, for each source, why a running pod does not see its changes. The reason is empty for files that the kubelet refreshes.
	files map[useKey]string
}

// Refuses returns why running pods do not see a change of a source. It is empty if they see it once the kubelet has refreshed their files.
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

// readInPlace reads AnnotationReload.
func (w *Workload) readInPlace(on map[string]string, p parts, reading Reading) {
	text, ok := on[AnnotationReload]
	if !ok {
		return
	}
	fail := func(problem string) { w.problem(AnnotationReload, "", problem+". The workload rolls instead") }
	endpoint, err := parseEndpoint(text)
	selector, selectorErr := metav1.LabelSelectorAsSelector(p.selector)
	switch {
	case err != nil:
		fail(err.Error())
	case !reading.InPlace:
		fail("is not allowed with these flags, without --reload-in-place")
	case p.selector == nil:
		fail("is for a Deployment, a StatefulSet or a DaemonSet, whose pods can be found")
	case selectorErr != nil || selector.Empty():
		fail("needs a selector of the pods")
	default:
		w.InPlace = &InPlace{Endpoint: endpoint, Selector: selector.String(), files: filesOf(&p.template.Spec)}
		if w.ID.Kind != deployments.Name {
			w.InPlace.Controller = w.ID.UID
		}
		if p.template.Spec.HostNetwork {
			w.InPlace.refused = "the pods have the network of their node, whose address is not theirs"
		}
	}
}

// filesOf returns, for each source that the pods of a spec read, why a running pod does not see its changes.
func filesOf(spec *corev1.PodSpec) map[useKey]string {
	files, mounted := make(readFiles), make(map[string]string)
	for i := range spec.InitContainers {
		files.container(&spec.InitContainers[i], "is read by an init container", mounted)
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
			files.volume(volume, "is read by a volume driver")
		case known:
			files.volume(volume, why)
		}
	}
	for _, pull := range spec.ImagePullSecrets {
		use := useKey{events.KindSecret, pull.Name}
		if _, known := files[use]; !known {
			files[use] = "is read to pull images"
		}
	}
	return files
}

// readFiles maps each source that pods read to the reason why a running pod does not see its changes. The reason is empty if it does.
type readFiles map[useKey]string

// container adds a container's environment variables, and records in mounted how it mounts volumes. Why is why it sees no changes of files.
func (f readFiles) container(c *corev1.Container, why string, mounted map[string]string) {
	env := make(uses)
	env.container(c)
	for use := range env {
		f[use] = "is read as environment"
	}
	for _, vm := range c.VolumeMounts {
		switch before := mounted[vm.Name]; {
		case vm.SubPathExpr != "" || path.Clean(vm.SubPath) != ".":
			mounted[vm.Name] = "is mounted with subPath"
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

// AnnotationReload is the annotation, on a workload, with the endpoint at which its pods are asked to reload instead of being replaced.
const AnnotationReload = "keyturn.dev/reload"

// Endpoint is the port and path at which each pod of a workload is asked to reload. The zero value means none.
type Endpoint struct {
	Port uint16
	// Path begins with a slash, and is escaped as in a URL.
	Path string
}

const (
	endpointPrefix = "http://:"
	// endpointForm describes valid values of AnnotationReload.
	endpointForm = "http://:<port>/<path>, such as http://:9090/-/reload; the host is each pod itself"
	maxEndpoint  = 512
)

// endpointPath allows no query, fragment, or other character that servers or proxies might interpret differently.
var endpointPath = regexp.MustCompile(`^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$`)

// parseEndpoint reads AnnotationReload. The value names no host, so permission to annotate a workload allows no requests except to its own pods.
// Errors do not quote the value, which may be a URL with a credential.
func parseEndpoint(text string) (Endpoint, error) {
	wrong := func(problem string) (Endpoint, error) {
		return Endpoint{}, fmt.Errorf("%s: write %s", problem, endpointForm)
	}
	rest, ok := strings.CutPrefix(text, endpointPrefix)
	switch {
	case len(text) > maxEndpoint:
		return wrong(fmt.Sprintf("is longer than %d bytes", maxEndpoint))
	case strings.HasPrefix(text, "https:"):
		return wrong("asks for TLS, for which a pod has no certificate of its address")
	case !ok:
		return wrong("is not a port and a path")
	}
	digits, path, _ := strings.Cut(rest, "/")
	port, err := strconv.ParseUint(digits, 10, 16)
	isDots := func(element string) bool { return element == "." || element == ".." }
	switch {
	case err != nil || port == 0 || strconv.FormatUint(port, 10) != digits:
		return wrong("has no port of 1 to 65535")
	case !endpointPath.MatchString(path):
		return wrong("has a path with other characters than letters, digits, -._~!$&'()*+,;=:@/ and %XX")
	case slices.ContainsFunc(strings.Split(path, "/"), isDots):
		return wrong("has a path with a . or .. element")
	}
	return Endpoint{Port: uint16(port), Path: "/" + path}, nil
}

// String returns the value of the annotation.
func (e Endpoint) String() string { return endpointPrefix + strconv.Itoa(int(e.Port)) + e.Path }
