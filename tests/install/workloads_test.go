package install

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// readers are the workloads of testdata/shop.yaml that read the Secret db, one of each kind. The Deployment api reads the
// ConfigMap app.
var readers = []string{"web", "queue", "agent", "report"}

// workloads are the workloads of testdata/shop.yaml, in a namespace.
type workloads struct {
	t         *testing.T
	kube      kubernetes.Interface
	namespace string
}

// shop returns testdata/shop.yaml for a namespace.
func shop(t *testing.T, namespace string) string {
	t.Helper()
	content := testkit.ReadFile(t, "testdata/shop.yaml")
	return strings.ReplaceAll(content, "NAMESPACE", namespace)
}

// prepare makes the namespace, if it is not there, and the sources. The nodes of the tests run pods that lack their sources, so a source that
// is created after the pods would count as a change.
func (w workloads) prepare() {
	w.t.Helper()
	namespaces, namespace := w.kube.CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	// That of an earlier test may still be on its way out: Flux waits for that, and then for a namespace that nobody makes.
	testkit.Await(w.t, "there is a namespace "+w.namespace, func(ctx context.Context) bool {
		_, err := namespaces.Create(ctx, namespace, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err == nil
		}
		found, err := namespaces.Get(ctx, w.namespace, metav1.GetOptions{})
		return err == nil && found.DeletionTimestamp == nil
	})
	w.secret("db", "one")
	w.configMap("app", "one")
}

// apply makes the workloads.
func (w workloads) apply() {
	w.t.Helper()
	apply(w.t, shop(w.t, w.namespace))
}

// secret and configMap write the sources of the workloads.
func (w workloads) secret(name, value string) {
	w.t.Helper()
	testkit.Must(w.t, programs.SetSecret(w.t.Context(), w.kube, w.namespace, name, map[string]string{"password": value}))
}

func (w workloads) configMap(name, value string) {
	w.t.Helper()
	testkit.Must(w.t, programs.SetConfigMap(w.t.Context(), w.kube, w.namespace, name, map[string]string{"level": value}))
}

// revisions returns the revisions on the pod templates, by workload, without workloads that were not rolled.
func (w workloads) revisions() map[string]string {
	w.t.Helper()
	revisions, client := map[string]string{}, dynamic.NewForConfigOrDie(plane.Config())
	for resource, template := range map[schema.GroupVersionResource][]string{
		appsv1.SchemeGroupVersion.WithResource("deployments"):  {"spec", "template"},
		appsv1.SchemeGroupVersion.WithResource("statefulsets"): {"spec", "template"},
		appsv1.SchemeGroupVersion.WithResource("daemonsets"):   {"spec", "template"},
		batchv1.SchemeGroupVersion.WithResource("cronjobs"):    {"spec", "jobTemplate", "spec", "template"},
	} {
		list, err := client.Resource(resource).Namespace(w.namespace).List(w.t.Context(), metav1.ListOptions{})
		testkit.Must(w.t, err)
		annotation := append(template, "metadata", "annotations", "keyturn.dev/revision")
		for _, object := range list.Items {
			if revision, _, _ := unstructured.NestedString(object.Object, annotation...); revision != "" {
				revisions[object.GetName()] = revision
			}
		}
	}
	return revisions
}

// rolled waits until workloads have another revision than they had.
func (w workloads) rolled(before map[string]string, names ...string) {
	w.t.Helper()
	for _, name := range names {
		testkit.Await(w.t, name+" is rolled", func(context.Context) bool { return w.revisions()[name] != before[name] })
	}
}

// untouched holds that workloads were not rolled.
func (w workloads) untouched(before map[string]string, names ...string) {
	w.t.Helper()
	now := w.revisions()
	for _, name := range names {
		if now[name] != before[name] {
			w.t.Errorf("%s was rolled, and reads nothing that changed", name)
		}
	}
}

// rollsReaders changes the Secret, for which those that read it are rolled, and no other.
func (w workloads) rollsReaders(password string) {
	w.t.Helper()
	before := w.revisions()
	w.secret("db", password)
	w.rolled(before, readers...)
	w.untouched(before, "api")
}

// rollsAPI changes the ConfigMap, for which the one that reads it is rolled, and no other.
func (w workloads) rollsAPI(level string) {
	w.t.Helper()
	before := w.revisions()
	w.configMap("app", level)
	w.rolled(before, "api")
	w.untouched(before, readers...)
}
