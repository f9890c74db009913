package install

import (
	"context"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	content, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(content), "NAMESPACE", namespace)
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
	if err := plane.ApplyYAML(w.t.Context(), strings.NewReader(shop(w.t, w.namespace))); err != nil {
		w.t.Fatal(err)
	}
}

// secret and configMap write the sources of the workloads.
func (w workloads) secret(name, value string) {
	w.t.Helper()
	if err := programs.SetSecret(w.t.Context(), w.kube, w.namespace, name, map[string]string{"password": value}); err != nil {
		w.t.Fatal(err)
	}
}

func (w workloads) configMap(name, value string) {
	w.t.Helper()
	if err := programs.SetConfigMap(w.t.Context(), w.kube, w.namespace, name, map[string]string{"level": value}); err != nil {
		w.t.Fatal(err)
	}
}

// revisions returns the revisions on the pod templates, by workload, without workloads that were not rolled.
func (w workloads) revisions() map[string]string {
	w.t.Helper()
	templates := map[string]map[string]string{}
	apps, batch := w.kube.AppsV1(), w.kube.BatchV1()
	deployments, err := apps.Deployments(w.namespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range deployments.Items {
		templates[d.Name] = d.Spec.Template.Annotations
	}
	statefulSets, err := apps.StatefulSets(w.namespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range statefulSets.Items {
		templates[s.Name] = s.Spec.Template.Annotations
	}
	daemonSets, err := apps.DaemonSets(w.namespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range daemonSets.Items {
		templates[d.Name] = d.Spec.Template.Annotations
	}
	cronJobs, err := batch.CronJobs(w.namespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range cronJobs.Items {
		templates[c.Name] = c.Spec.JobTemplate.Spec.Template.Annotations
	}
	revisions := map[string]string{}
	for name, annotations := range templates {
		if revision := annotations["keyturn.dev/revision"]; revision != "" {
			revisions[name] = revision
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
