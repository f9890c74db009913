package manifests

import "fmt"

// SecretProviderClass returns a SecretProviderClass of the Secrets Store CSI driver. Annotations are in braces.
func SecretProviderClass(namespace, name, annotations string) string {
	return fmt.Sprintf(`apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata: {name: %s, namespace: %s, annotations: %s}
spec: {provider: vault, parameters: {roleName: shop}}
`, name, namespace, annotations)
}

// PodStatus is the object in which the Secrets Store CSI driver records what it has mounted into a pod.
type PodStatus struct {
	Namespace, Pod, Class string
	// UID is the UID of the pod, which owns the status. Without an existing owner, the status would be garbage-collected.
	UID string
	// Version is the version of the first of two mounted objects.
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
