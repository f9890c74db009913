package install

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

// rewriter creates the volumes, and returns a replacer that translates the pod's texts to this machine.
func (k *kubelet) rewriter(pod *corev1.Pod, container corev1.Container) func(string) string {
	k.Helper()
	pairs := []string{
		"0.0.0.0:4222", k.nats,
		"127.0.0.1:4222", k.nats,
		"keyturn-nats." + k.namespace + ".svc:4222", k.nats,
		"nats.nats.svc:4222", k.nats,
		"=:8080", "=127.0.0.1:0",
		"=:8081", "=127.0.0.1:0",
		"=:9440", "=127.0.0.1:0",
		"=:9441", "=127.0.0.1:0",
	}
	pairs = append(pairs, k.further...)
	for _, mount := range container.VolumeMounts {
		at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if at >= 0 && !hasToken(pod.Spec.Volumes[at]) {
			folder := k.folder(pod, pod.Spec.Volumes[at])
			k.fill(folder, k.files(pod, pod.Spec.Volumes[at]))
			pairs = append(pairs, "="+mount.MountPath, "="+folder)
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// hasToken reports whether a volume is the API server's mount of the token. It is not needed, because there is a kubeconfig. A token for somebody
// else has an audience.
func hasToken(volume corev1.Volume) bool {
	return volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources, func(source corev1.VolumeProjection) bool {
		return source.ServiceAccountToken != nil && source.ServiceAccountToken.Audience == ""
	})
}

// mountsToken reports whether a container has the token of the pod's account.
func mountsToken(pod *corev1.Pod, container corev1.Container) bool {
	return slices.ContainsFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool {
		return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool { return volume.Name == mount.Name && hasToken(volume) })
	})
}

// folder is where a volume is on this machine. Pods share it if they mount the same.
func (k *kubelet) folder(pod *corev1.Pod, volume corev1.Volume) string {
	var name string
	switch {
	case volume.Secret != nil && volume.Secret.Items != nil:
		name = "items-of-" + volume.Secret.SecretName
	case volume.Secret != nil:
		name = "secret-" + volume.Secret.SecretName
	case volume.ConfigMap != nil:
		name = "configmap-" + volume.ConfigMap.Name
	case volume.Projected != nil:
		name = "projected-" + volume.Name
	case volume.PersistentVolumeClaim != nil:
		name = "claim-" + volume.PersistentVolumeClaim.ClaimName
	default:
		name = "pod-" + string(pod.UID) + "-" + volume.Name
	}
	return filepath.Join(k.dir, name)
}

// files are those of a volume.
func (k *kubelet) files(pod *corev1.Pod, volume corev1.Volume) map[string][]byte {
	k.Helper()
	switch {
	case volume.Secret != nil && volume.Secret.Items != nil:
		return k.items(pod, volume, volume.Secret.SecretName, volume.Secret.Items, volume.Secret.Optional)
	case volume.Secret != nil:
		return k.secret(volume.Secret.SecretName)
	case volume.ConfigMap != nil:
		return k.configFiles(volume.ConfigMap.Name)
	case volume.Projected != nil:
		files := map[string][]byte{}
		for _, source := range volume.Projected.Sources {
			switch {
			case source.Secret != nil && source.Secret.Items != nil:
				maps.Copy(files, k.items(pod, volume, source.Secret.Name, source.Secret.Items, source.Secret.Optional))
			case source.ConfigMap != nil && source.ConfigMap.Items == nil:
				maps.Copy(files, k.configFiles(source.ConfigMap.Name))
			case source.ServiceAccountToken != nil: // For a store that asks for it.
			default:
				k.Fatalf("volume %s of %s: want keys of Secrets, and whole ConfigMaps", volume.Name, pod.Name)
			}
		}
		return files
	case volume.PersistentVolumeClaim != nil, volume.EmptyDir != nil:
	default:
		k.Fatalf("volume %s of %s: want Secrets, ConfigMaps, a claim or an emptyDir", volume.Name, pod.Name)
	}
	return nil
}

// items are the files of a volume with some keys of a Secret. Those that are optional may not be there.
func (k *kubelet) items(pod *corev1.Pod, volume corev1.Volume, secret string, items []corev1.KeyToPath, optional *bool) map[string][]byte {
	k.Helper()
	all, files := k.secret(secret), map[string][]byte{}
	for _, item := range items {
		content, ok := all[item.Key]
		switch {
		case ok:
			files[item.Path] = content
		case optional == nil || !*optional:
			k.Fatalf("volume %s of %s: the Secret %s has no %s", volume.Name, pod.Name, secret, item.Key)
		}
	}
	return files
}

// fill writes the files of a volume. Those that are there stay, as on a claim.
func (k *kubelet) fill(folder string, files map[string][]byte) {
	k.Helper()
	testkit.Must(k, os.MkdirAll(folder, 0o750))
	for name, content := range files {
		testkit.WriteFile(k.T, filepath.Join(folder, name), content)
	}
}
