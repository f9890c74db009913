package actuate

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

var deploymentResource = schema.GroupResource{Group: "apps", Resource: "deployments"}

// webDeployment returns a Deployment that rolls on db, at a resourceVersion.
func webDeployment(version string, annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "w", ResourceVersion: version, Annotations: annotations},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}}},
		}}}}},
	}
}

// mountingDeployment returns a Deployment that reads a Secret as files.
func mountingDeployment(secret string, annotations map[string]string) *appsv1.Deployment {
	deployment := webDeployment("50", annotations)
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	spec := &deployment.Spec.Template.Spec
	spec.Containers[0].EnvFrom = nil
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/config"}}
	spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}}
	return deployment
}

// revisionIn returns the revision in a patch, empty if it only records.
func revisionIn(action k8stesting.Action) string {
	sent, _ := action.(k8stesting.PatchActionImpl)
	return setIn(sent.Patch, annotationRevision)
}

// recording returns a task for web that only records.
func recording(t *testing.T) *task {
	t.Helper()
	w, ok := workload.Read(deployments, webDeployment("50", rollOn("auto")), workload.Reading{})
	if !ok {
		t.Fatal("no workload")
	}
	w.TemplateVersion = "200"
	r := rollOf(t, deployments, w, db)
	if r.rolls {
		t.Fatal("it rolls")
	}
	return r
}

func TestAPatchIsSentAndItsAnswerIsKnownAtOnce(t *testing.T) {
	client := fake.NewClientset(webDeployment("50", rollOn("auto")))
	client.PrependReactor("patch", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		sent, ok := action.(k8stesting.PatchActionImpl)
		if !ok || sent.PatchType != types.JSONPatchType || sent.PatchOptions.FieldManager != "keyturn" {
			t.Errorf("sent was %+v, want a JSON patch of the field manager keyturn", action)
		}
		after, err := patched(webDeployment("60", rollOn("auto")), action)
		return true, after, err
	})
	options := testOptions()
	options.Client = client
	r := recording(t)
	x := indexOf(r.workload)
	patcher := patcherOf(options, x)
	result := patcher.send(t.Context(), r)
	if result.err != nil {
		t.Fatal(result.err)
	}
	if result.started.Verb != "" {
		t.Errorf("a patch that rolls nothing has the outcome %s", result.started.Verb)
	}
	w := x.Get(r.workload.Key())
	if w.Version != "60" || w.Rolled["secret/db"].Version != "100" {
		t.Errorf("the index has version %s and the record %v", w.Version, w.Rolled)
	}
	if again := decisionOf(w, changeOf(nil), nil); again.Reason != plan.AlreadyRolled {
		t.Errorf("the same change again: got %s", again.Reason)
	}
}

func TestAPatchThatIsRefusedSaysWhatItWasOf(t *testing.T) {
	client := fake.NewClientset()
	options := testOptions()
	options.Client = client
	r := recording(t)
	x := indexOf(r.workload)
	patcher := patcherOf(options, x)
	result := patcher.send(t.Context(), r)
	if !apierrors.IsNotFound(result.err) || kube.IsDenied(result.err) || result.after != nil {
		t.Errorf("a workload that is gone: %+v", result)
	}
	client.PrependReactor("patch", "deployments", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewBadRequest("no")
	})
	result = patcher.send(t.Context(), r)
	const want = "patching deployment/web in namespace shop: no"
	if result.err == nil || result.err.Error() != want || !kube.IsDenied(result.err) {
		t.Errorf("a patch that is not understood: error %v (denied: %t), want %q", result.err, kube.IsDenied(result.err), want)
	}
	if w := x.Get(r.workload.Key()); w.Version != "50" {
		t.Errorf("the index has version %s", w.Version)
	}
}
