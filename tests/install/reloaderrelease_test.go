package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// metaInfo is the ConfigMap that Reloader creates in its own namespace, which may be ours during a migration.
const metaInfo = "reloader-meta-info"

// TestHelmInstallsKeyturnWithTheValuesOfReloader installs the chart in the namespace of Reloader, with its values.
func TestHelmInstallsKeyturnWithTheValuesOfReloader(t *testing.T) {
	r := newRelease(t)
	r.applyShopOfReloader()
	r.volume()
	theirs := r.leaveMetaInfo()
	install := slices.Concat([]string{"install", "keyturn", chart, "--values", "testdata/reloader-values.yaml"}, operatorsValues, untilReady)
	r.part("helm installs Keyturn beside what Reloader has left", func() { r.helm(install...) })
	r.part("the ConfigMap of Reloader stays Reloader's", func() {
		if now := r.metaInfo(); now == nil || now.ResourceVersion != theirs.ResourceVersion {
			t.Errorf("got %v, want it as it was", now)
		}
	})
	r.part("what the pods run becomes ready", r.start)
	r.part("a ConfigMap with the label rolls what names it and what reads it, and starts a Job of the CronJob", r.rollsAsReloader)
	r.part("an upgrade creates the ConfigMap when Reloader's is gone, and the next one keeps it", r.takesMetaInfo)
	r.part("helm uninstalls all of it", func() {
		r.stop()
		r.helm("uninstall", "keyturn")
		testkit.Await(t, "the ConfigMap is gone", func(context.Context) bool { return r.metaInfo() == nil })
	})
}

// applyShopOfReloader makes the workloads of somebody who has Reloader, and what they read.
func (r *release) applyShopOfReloader() {
	r.Helper()
	r.prepare()
	r.write("one")
	shop := testkit.ReadFile(r.T, "testdata/reloader-shop.yaml")
	apply(r.T, strings.ReplaceAll(shop, "NAMESPACE", r.namespace))
}

// rollsAsReloader changes a ConfigMap and a Secret that the values ignore.
func (r *release) rollsAsReloader() {
	r.Helper()
	before := r.revisions()
	r.secret("db", "two")
	r.write("two")
	r.rolled(before, "web", "api")
	r.startsAJob()
	r.untouched(before, "vault", "report") // The template of the CronJob stays as it is.
	for _, name := range []string{"web", "api"} {
		deployment, err := r.kube.AppsV1().Deployments(r.namespace).Get(r.Context(), name, metav1.GetOptions{})
		testkit.Must(r, err)
		if got := deployment.Spec.Template.Annotations["reloader.stakater.com/last-reloaded-from"]; !strings.Contains(got, `"name":"app"`) {
			r.Errorf("the mark of Reloader on %s: got %q", name, got)
		}
	}
}

// write writes the ConfigMap of the workloads, with the label that Reloader's values ask for.
func (r *release) write(value string) {
	r.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"reloaded":"yes"}},"data":{"level":%q}}`, value)
	if _, err := r.kube.CoreV1().ConfigMaps(r.namespace).Patch(r.Context(), "app", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

// startsAJob waits for the only Job, which is of the CronJob.
func (i *installation) startsAJob() {
	i.Helper()
	cronJob, err := i.kube.BatchV1().CronJobs(i.namespace).Get(i.Context(), "report", metav1.GetOptions{})
	testkit.Must(i, err)
	testkit.Await(i.T, "a Job of the CronJob is started", func(ctx context.Context) bool {
		jobs, err := i.kube.BatchV1().Jobs(i.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(jobs.Items) == 1 && metav1.IsControlledBy(&jobs.Items[0], cronJob)
	})
}

// leaveMetaInfo creates the ConfigMap as Reloader does, which is not in the way of Helm.
func (r *release) leaveMetaInfo() *corev1.ConfigMap {
	r.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: programs.SystemNamespace}}
	if _, err := r.kube.CoreV1().Namespaces().Create(r.Context(), namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		r.Fatal(err)
	}
	made, err := r.kube.CoreV1().ConfigMaps(programs.SystemNamespace).Create(r.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: metaInfo, Labels: map[string]string{"reloader.stakater.com/meta-info": "reloader"}},
		Data:       map[string]string{"buildInfo": "{}"},
	}, metav1.CreateOptions{})
	testkit.Must(r, err)
	return made
}

// metaInfo returns the ConfigMap, or nil if there is none.
func (r *release) metaInfo() *corev1.ConfigMap {
	r.Helper()
	configMap, err := r.kube.CoreV1().ConfigMaps(programs.SystemNamespace).Get(r.Context(), metaInfo, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	testkit.Must(r, err)
	return configMap
}

func (r *release) takesMetaInfo() {
	r.Helper()
	testkit.Must(r, r.kube.CoreV1().ConfigMaps(programs.SystemNamespace).Delete(r.Context(), metaInfo, metav1.DeleteOptions{}))
	for _, when := range []string{"the first", "the next"} {
		r.upgrade()
		if now := r.metaInfo(); now == nil || now.Labels["app.kubernetes.io/part-of"] != "keyturn" {
			r.Errorf("after %s upgrade: got %v, want that of the chart", when, now)
		}
	}
}
