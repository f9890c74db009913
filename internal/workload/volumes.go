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

// mount is the part of a volume that is read. The zero value reads all of it.
type mount struct {
	// whole means that a container mounts the whole volume, or an unknown part of it.
	whole bool
	// paths are the cleaned subPaths of the other mounts.
	paths []string
}

func (m mounts) container(c *corev1.Container) {
	for _, vm := range c.VolumeMounts {
		read := m[vm.Name]
		part := path.Clean(vm.SubPath)
		// No data key starts with "..": such paths use the kubelet's own links.
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

// files returns the reference to a source through the volume. If no mount reaches an item, all items count, because the spec does not tell.
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

func (u uses) volume(v *corev1.VolumeSource, read mount) {
	add := u.add
	if !read.isAny() {
		add = u.addUnmounted
	}
	if s := v.Secret; s != nil {
		add(read.files(events.KindSecret, s.SecretName, s.Items), s.Optional)
	}
	if s := v.ConfigMap; s != nil {
		add(read.files(events.KindConfigMap, s.Name, s.Items), s.Optional)
	}
	if v.Projected != nil {
		for i := range v.Projected.Sources {
			if s := v.Projected.Sources[i].Secret; s != nil {
				add(read.files(events.KindSecret, s.Name, s.Items), s.Optional)
			}
			if s := v.Projected.Sources[i].ConfigMap; s != nil {
				add(read.files(events.KindConfigMap, s.Name, s.Items), s.Optional)
			}
		}
	}
	if c := v.CSI; c != nil && c.Driver == secretsStoreDriver {
		add(Reference{Kind: events.KindSecretProviderClass, Name: c.VolumeAttributes["secretProviderClass"]}, nil)
	}
	add(Reference{Kind: events.KindSecret, Name: driverSecret(v)}, nil)
}

// secretsStoreDriver is the name of the Secrets Store CSI driver. Pods read everything that it mounts for a SecretProviderClass.
const secretsStoreDriver = "secrets-store.csi.k8s.io"

// driverSecret returns the name of the Secret with which the driver of a volume authenticates, or "" if there is none.
func driverSecret(v *corev1.VolumeSource) string {
	if v.AzureFile != nil {
		return v.AzureFile.SecretName
	}
	var ref *corev1.LocalObjectReference
	switch {
	case v.CSI != nil:
		ref = v.CSI.NodePublishSecretRef
	case v.CephFS != nil:
		ref = v.CephFS.SecretRef
	case v.Cinder != nil:
		ref = v.Cinder.SecretRef
	case v.FlexVolume != nil:
		ref = v.FlexVolume.SecretRef
	case v.ISCSI != nil:
		ref = v.ISCSI.SecretRef
	case v.RBD != nil:
		ref = v.RBD.SecretRef
	case v.ScaleIO != nil:
		ref = v.ScaleIO.SecretRef
	case v.StorageOS != nil:
		ref = v.StorageOS.SecretRef
	}
	if ref == nil {
		return ""
	}
	return ref.Name
}
