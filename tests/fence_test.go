package tests

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/kube"
	patching "github.com/keyturn/keyturn/internal/workload"
)

// createEveryKind creates a workload of each kind with the name. None has pods.
func createEveryKind(t *testing.T, client kubernetes.Interface, namespace, name string, annotations map[string]string) {
	t.Helper()
	labels, none := map[string]string{"app": name}, int32(0)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"none": "such"},
			Containers: []corev1.Container{{Name: "app", Image: "app", EnvFrom: []corev1.EnvFromSource{{
				SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}},
			}}}},
		},
	}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	job := *template.DeepCopy()
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := client.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &none, Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &none, Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	suspended := true
	_, err = client.BatchV1().CronJobs(namespace).Create(t.Context(), &batchv1.CronJob{
		ObjectMeta: meta, Spec: batchv1.CronJobSpec{
			Schedule: "0 0 1 1 *", Suspend: &suspended, JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: job}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestThePatchOfALeaderThatWasFrozenChangesNothing(t *testing.T) {
	t.Parallel()
	client, namespace := kubernetes.NewForConfigOrDie(plane.Config()), plane.Namespace(t)
	auto := map[string]string{"keyturn.dev/roll-on": "auto"}
	edited := maps.Clone(auto)
	edited["keyturn.dev/rolled"] = "<\"&\\ é\u2028~/>"
	for name, annotations := range map[string]map[string]string{"bare": nil, "auto": auto, "edited": edited} {
		createEveryKind(t, client, namespace, name, annotations)
		for _, kind := range patching.BuiltIn() {
			t.Run(name+" "+kind.Name, func(t *testing.T) {
				objects := kind.Objects(patching.Clients{Typed: client}, namespace)
				read := func() *patching.Workload {
					t.Helper()
					object, err := objects.Get(t.Context(), name)
					if err != nil {
						t.Fatal(err)
					}
					w, ok := patching.Read(kind, object, patching.Reading{All: true})
					if !ok {
						t.Fatal("it cannot be read")
					}
					return w
				}
				roll := func(w *patching.Workload, version string, rolls bool) error {
					t.Helper()
					patch, err := kind.Patch(w, patching.Write{Rolls: rolls, Traceparent: "trace-" + version, Rolled: map[string]patching.RolledFor{
						"secret/db": {Fingerprint: "k:1", Version: version, UID: "u"},
					}})
					if err != nil {
						t.Fatal(err)
					}
					_, err = objects.Patch(t.Context(), name, patch)
					return err
				}
				before := read()
				// The controller may annotate the workload at this very moment.
				for err := roll(before, "110", true); err != nil; err = roll(before, "110", true) {
					if !kube.HasChanged(err) || t.Context().Err() != nil {
						t.Fatal(err)
					}
					before = read()
				}
				after := read()
				for _, rolls := range []bool{true, false} {
					if err := roll(before, "100", rolls); !kube.HasChanged(err) || kube.IsDenied(err) {
						t.Errorf("the frozen leader is answered %v; that the workload has changed: %t", err, kube.HasChanged(err))
					}
				}
				if got := read(); got.Rolled["secret/db"].Version != "110" || got.Revision != after.Revision {
					t.Errorf("the record is %v, and the revision %s", got.Rolled, got.Revision)
				}
				if err := roll(read(), "120", true); err != nil {
					t.Errorf("the next change: %v", err)
				}
				if got := read(); got.Rolled["secret/db"].Version != "120" || got.Revision == after.Revision {
					t.Errorf("after the next change the record is %v, and the revision %s", got.Rolled, got.Revision)
				}
			})
		}
	}
}
