package manifests

import "fmt"

// SecretProviderClass returns one of the Secrets Store CSI driver. Annotations are those of its metadata, in braces.
func SecretProviderClass(namespace, name, annotations string) string {
	return fmt.Sprintf(`apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata: {name: %s, namespace: %s, annotations: %s}
spec: {provider: vault, parameters: {roleName: shop}}
`, name, namespace, annotations)
}

// PodStatus is what the Secrets Store CSI driver writes about what it has mounted into a pod.
type PodStatus struct {
	Namespace, Pod, Class string
	// UID is that of the pod, which owns the status: without its owner it would be collected as garbage.
	UID string
	// Version is that of the first of two objects.
	Version string
}

// Name is the name of the object.
func (s PodStatus) Name() string { return s.Pod + "-" + s.Namespace + "-" + s.Class }

// YAML returns one document.
func (s PodStatus) YAML() string {
	return fmt.Sprintf(`apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClassPodStatus
metadata:
  name: %[1]s
  namespace: %[2]s
  labels: {internal.secrets-store.csi.k8s.io/node-name: node-0}
  ownerReferences: [{apiVersion: v1, kind: Pod, name: %[3]s, uid: %[5]s}]
status:
  podName: %[3]s
  secretProviderClassName: %[4]s
  mounted: true
  targetPath: /var/lib/kubelet/pods/%[5]s/volumes/kubernetes.io~csi/secrets/mount
  objects: [{id: password, version: %[6]s}, {id: user, version: "1"}]
`, s.Name(), s.Namespace, s.Pod, s.Class, s.UID, s.Version)
}
