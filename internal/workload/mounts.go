package workload

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
)

// mounts maps the name of each volume to how the containers of a pod mount it.
type mounts map[string]mount

// mount is how much of a volume is read. The zero value reads all of it.
type mount struct {
	// whole means that a container mounts the whole volume, or a part that cannot be told from the spec.
	whole bool
	// paths are the cleaned subPaths of the other mounts.
	paths []string
}

func (m mounts) container(c *corev1.Container) {
	for _, vm := range c.VolumeMounts {
		read := m[vm.Name]
		part := path.Clean(vm.SubPath)
		// No data key starts with "..": such a path uses the kubelet's own links.
		if vm.SubPathExpr != "" || part == "." || strings.HasPrefix(part, "..") || path.IsAbs(part) {
			read.whole = true
		} else {
			read.paths = append(read.paths, part)
		}
		m[vm.Name] = read
	}
}

// isAny reports whether any container mounts the volume.
func (m mount) isAny() bool { return m.whole || len(m.paths) > 0 }

// files returns how the pods read a source through the volume. Items that no mount reaches count only if no item is reached at all: then
// the spec does not tell what is read, and it may be everything.
func (m mount) files(kind events.Kind, name string, items []corev1.KeyToPath) Reference {
	use := Reference{Kind: kind, Name: name}
	all := m.whole || !m.isAny()
	if len(items) == 0 {
		if all {
			return use
		}
		for _, part := range m.paths {
			file, _, _ := strings.Cut(part, "/")
			use.Keys = append(use.Keys, file)
		}
		return use
	}
	for _, item := range items {
		use.Required = append(use.Required, item.Key)
		if all || m.reaches(path.Clean(item.Path)) {
			use.Keys = append(use.Keys, item.Key)
		}
	}
	if use.Keys == nil {
		use.Keys = slices.Clone(use.Required)
	}
	return use
}

// reaches reports whether a container mounts the file, or a folder that contains it.
func (m mount) reaches(file string) bool {
	return slices.ContainsFunc(m.paths, func(part string) bool {
		return file == part || strings.HasPrefix(file, part+"/")
	})
}
