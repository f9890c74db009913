package install

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// installation is Keyturn in the cluster, however it was installed, and its processes.
type installation struct {
	*testing.T
	workloads
	kubelet *kubelet
	// namespaced means that only the namespace of the workloads is served.
	namespaced        bool
	watcher, actuator *programs.Program
	objects           dynamic.Interface
	mapper            meta.RESTMapper
}

func newInstallation(t *testing.T, namespace string) *installation {
	t.Helper()
	config := plane.Config()
	config.WarningHandler = rest.NoWarnings{} // There are kinds that nobody is to list any more.
	kube := kubernetes.NewForConfigOrDie(config)
	return &installation{
		T: t, kubelet: newKubelet(t, programs.SystemNamespace), workloads: workloads{t, kube, namespace},
		objects: dynamic.NewForConfigOrDie(config),
		mapper:  restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kube.Discovery())),
	}
}

// volume makes a volume that the actuator's claim can have.
func (i *installation) volume() {
	i.Helper()
	i.volumeNamed("disk-" + i.namespace)
}

func (i *installation) volumeNamed(name string) {
	i.Helper()
	volumes := i.kube.CoreV1().PersistentVolumes()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none"}},
		},
	}
	if _, err := volumes.Create(i.Context(), volume, metav1.CreateOptions{}); err != nil {
		i.Fatal(err)
	}
	i.Cleanup(func() {
		if err := volumes.Delete(context.WithoutCancel(i.Context()), volume.Name, metav1.DeleteOptions{}); err != nil {
			i.Error(err)
		}
	})
}

// start runs what the pods run: the Job, and then both programs.
func (i *installation) start() {
	i.Helper()
	i.kubelet.await(i.kubelet.run("keys"))
	i.actuator = i.kubelet.runReady("actuator")
	i.watcher = i.kubelet.runReady("watcher")
	i.kubelet.cannotAsk(i.kubelet.pod("actuator"))
}

func (i *installation) generation(deployment string) int64 {
	i.Helper()
	object, err := i.kube.AppsV1().Deployments(i.namespace).Get(i.Context(), deployment, metav1.GetOptions{})
	testkit.Must(i, err)
	return object.Generation
}

func (i *installation) exists(ctx context.Context, object *unstructured.Unstructured) bool {
	i.Helper()
	_, err := i.resource(object).Get(ctx, object.GetName(), metav1.GetOptions{})
	return !apierrors.IsNotFound(err)
}

// resource returns the client for an object's kind and namespace.
func (i *installation) resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	i.Helper()
	gvk := object.GroupVersionKind()
	mapping, err := i.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	testkit.Must(i, err)
	if object.GetNamespace() == "" {
		return i.objects.Resource(mapping.Resource)
	}
	return i.objects.Resource(mapping.Resource).Namespace(object.GetNamespace())
}

// part is a step with a name. Those after one that failed would only say so again.
func (i *installation) part(name string, play func()) {
	i.Helper()
	start := time.Now()
	play()
	i.Logf("%s: %.1fs", name, time.Since(start).Seconds())
	if i.Failed() {
		i.Fatalf("it is not so that %s", name)
	}
}
