package install

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// elsewhere lists the API groups of programs that the test bed does not have. tests/monitoring checks those of the Prometheus
// operator, and TestCertManagerIssuesAndRenewsTheCertificateOfNATS those of cert-manager.
var elsewhere = map[string]bool{"cert-manager.io": true, "monitoring.coreos.com": true, "notification.toolkit.fluxcd.io": true}

// A namespace that enforces "restricted" refuses pods, and only warns of what makes them: so what would be made is asked for too.
func TestEverythingInDeployIsAdmittedAsRestricted(t *testing.T) {
	t.Parallel()
	a := newAdmission(t)
	t.Run("the namespace refuses a pod that is not restricted", func(t *testing.T) {
		template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "keyturn"}}}}
		var err error
		testkit.Await(t, "it is forbidden", func(ctx context.Context) bool {
			err = a.admitPod(ctx, "open", template)
			return apierrors.IsForbidden(err)
		}, func() string { return fmt.Sprintf("got %v", err) })
	})
	for name, dir := range overlays(t) {
		t.Run(name, func(t *testing.T) {
			rendered, err := testbed.Kustomize(t.Context(), os.Stderr, dir)
			testkit.Must(t, err)
			objects, err := testbed.ReadManifests(strings.NewReader(string(rendered)))
			testkit.Must(t, err)
			if len(objects) == 0 {
				t.Fatal("it is empty")
			}
			for _, object := range objects {
				a.admit(t, object)
			}
		})
	}
}

// overlays returns a folder for each kustomization in deploy, by name. A component is added to deploy/base, or to the kustomization
// that it is for, and transformers are too.
func overlays(t *testing.T) map[string]string {
	t.Helper()
	overlays := map[string]string{}
	root := t.TempDir()
	testkit.Must(t, os.CopyFS(filepath.Join(root, "deploy"), os.DirFS("../../deploy")))
	deploy := filepath.Join(root, "deploy")
	err := filepath.WalkDir(deploy, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "kustomization.yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(deploy, filepath.Dir(path))
		if err != nil {
			return err
		}
		field, before := "components", ""
		switch {
		case name == "namespace":
			field = "namespace: test\ntransformers"
		case !strings.Contains(string(content), "kind: Component"):
			overlays[name] = filepath.Dir(path)
			return nil
		case strings.HasPrefix(name, "targets/"):
			before = "../deploy/components/targets, " // a recipe adds to its file
		case strings.HasPrefix(name, "projections/"):
			before = "../deploy/components/projector, " // and so does an example of what may be projected
		}
		base := "base"
		if strings.HasPrefix(name, "flux") {
			base = "flux/cluster"
		}
		if name == "components/volume" {
			base = "single"
		}
		overlay := filepath.Join(root, strings.ReplaceAll(name, "/", "-"))
		overlays[name] = overlay
		if err := os.Mkdir(overlay, 0o750); err != nil {
			return err
		}
		content = fmt.Appendf(nil, "resources: [../deploy/%s]\n%s: [%s../deploy/%s]\n", base, field, before, name)
		return os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), content, 0o600)
	})
	testkit.Must(t, err)
	return overlays
}

// admission dry-runs objects against the API server, in one namespace in place of those that they name.
type admission struct {
	namespace string
	kube      kubernetes.Interface
	client    dynamic.Interface
	mapper    meta.RESTMapper
	// warnings are the API server's warnings since the last look.
	warnings []string
}

func newAdmission(t *testing.T) *admission {
	t.Helper()
	config := plane.Config()
	a := &admission{namespace: plane.Namespace(t)}
	config.WarningHandler = a
	a.kube, a.client = kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
	a.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(a.kube.Discovery()))
	restricted := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/warn":"restricted"}}}`)
	if _, err := a.kube.CoreV1().Namespaces().Patch(t.Context(), a.namespace, types.MergePatchType, restricted, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	// What a pod names is there when it is asked for.
	for _, account := range []string{"keyturn", "keyturn-keys", "keyturn-watcher", "keyturn-actuator", "keyturn-audit", "keyturn-projector"} {
		object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
		if _, err := a.kube.CoreV1().ServiceAccounts(a.namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Must(t, plane.Apply(t.Context(), "../../deploy/base/priorityclass.yaml"))
	return a
}

// HandleWarningHeader records a warning of the API server.
func (a *admission) HandleWarningHeader(_ int, _, text string) {
	a.warnings = append(a.warnings, text)
}

// admit asks for an object, and for the pods that it would make.
func (a *admission) admit(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	name := object.GetKind() + " " + object.GetName()
	if elsewhere[object.GroupVersionKind().Group] {
		return
	}
	mapping, err := a.mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var resource dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		object.SetNamespace(a.namespace)
		resource = a.client.Resource(mapping.Resource).Namespace(a.namespace)
	}
	content, err := object.MarshalJSON()
	testkit.Must(t, err)
	force := true
	_, err = resource.Patch(t.Context(), object.GetName(), types.ApplyPatchType, content, metav1.PatchOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: "install", FieldValidation: metav1.FieldValidationStrict, Force: &force,
	})
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if template, ok := podTemplate(t, object); ok {
		if err := a.admitPod(t.Context(), object.GetName(), template); err != nil {
			t.Errorf("the pods of %s: %v", name, err)
		}
	}
	for _, warning := range a.warnings {
		t.Errorf("about %s: the API server warns: %s", name, warning)
	}
	a.warnings = nil
}

func (a *admission) admitPod(ctx context.Context, name string, template corev1.PodTemplateSpec) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: template.Labels}, Spec: template.Spec}
	_, err := a.kube.CoreV1().Pods(a.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// podTemplate is what an object makes pods from. Volumes of claims come from elsewhere.
func podTemplate(t *testing.T, object *unstructured.Unstructured) (template corev1.PodTemplateSpec, ok bool) {
	t.Helper()
	content, ok, err := unstructured.NestedMap(object.Object, "spec", "template")
	if err != nil || !ok {
		return template, false
	}
	testkit.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(content, &template))
	claims, _, _ := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates")
	for _, claim := range claims {
		volumeName, _, _ := unstructured.NestedString(claim.(map[string]any), "metadata", "name")
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: volumeName},
		}})
	}
	return template, true
}
