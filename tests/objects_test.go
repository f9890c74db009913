package tests

import (
	"encoding/json"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// workload is a workload that has no pods: what rolls it can be seen in its spec.
type workload struct {
	// kind is one of kinds. Empty means StatefulSet.
	kind, name string
	// on is its annotation keyturn.dev/roll-on. Empty: none.
	on string
	// annotations are added to the workload, template to its pod template.
	annotations, template map[string]string
	// read makes the pod spec read something. Nil: it reads nothing.
	read func(*corev1.PodSpec)
}

// String is the name of the workload in a tally.
func (w workload) String() string {
	if w.kind == "" {
		w.kind = "statefulset"
	}
	return w.kind + "/" + w.name
}

// kind is a kind of workloads.
type kind struct {
	name     string
	resource schema.GroupVersionResource
	create   func(*rig, metav1.ObjectMeta, corev1.PodTemplateSpec) error
}

// kinds are all kinds of workloads.
var kinds = []kind{
	{
		"deployment", appsv1.SchemeGroupVersion.WithResource("deployments"),
		func(r *rig, meta metav1.ObjectMeta, template corev1.PodTemplateSpec) error {
			_, err := r.client.AppsV1().Deployments(r.namespace).Create(r.Context(), &appsv1.Deployment{
				ObjectMeta: meta,
				Spec:       appsv1.DeploymentSpec{Replicas: new(int32), Selector: selects(template), Template: template},
			}, metav1.CreateOptions{})
			return err
		},
	},
	{
		"statefulset", appsv1.SchemeGroupVersion.WithResource("statefulsets"),
		func(r *rig, meta metav1.ObjectMeta, template corev1.PodTemplateSpec) error {
			_, err := r.client.AppsV1().StatefulSets(r.namespace).Create(r.Context(), &appsv1.StatefulSet{
				ObjectMeta: meta,
				Spec:       appsv1.StatefulSetSpec{Replicas: new(int32), Selector: selects(template), Template: template},
			}, metav1.CreateOptions{})
			return err
		},
	},
	{
		"daemonset", appsv1.SchemeGroupVersion.WithResource("daemonsets"),
		func(r *rig, meta metav1.ObjectMeta, template corev1.PodTemplateSpec) error {
			template.Spec.NodeSelector = map[string]string{"example.com/node": "none"}
			_, err := r.client.AppsV1().DaemonSets(r.namespace).Create(r.Context(), &appsv1.DaemonSet{
				ObjectMeta: meta,
				Spec:       appsv1.DaemonSetSpec{Selector: selects(template), Template: template},
			}, metav1.CreateOptions{})
			return err
		},
	},
	{
		"cronjob", batchv1.SchemeGroupVersion.WithResource("cronjobs"),
		func(r *rig, meta metav1.ObjectMeta, template corev1.PodTemplateSpec) error {
			template.Spec.RestartPolicy = corev1.RestartPolicyNever
			suspended := true
			_, err := r.client.BatchV1().CronJobs(r.namespace).Create(r.Context(), &batchv1.CronJob{
				ObjectMeta: meta,
				Spec: batchv1.CronJobSpec{Schedule: "@yearly", Suspend: &suspended, JobTemplate: batchv1.JobTemplateSpec{
					Spec: batchv1.JobSpec{Template: template},
				}},
			}, metav1.CreateOptions{})
			return err
		},
	},
}

func selects(template corev1.PodTemplateSpec) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: template.Labels}
}

// create creates a workload.
func (r *rig) create(w workload) {
	r.Helper()
	meta := metav1.ObjectMeta{Name: w.name, Annotations: map[string]string{}}
	maps.Copy(meta.Annotations, w.annotations)
	if w.on != "" {
		meta.Annotations["keyturn.dev/roll-on"] = w.on
	}
	template := programs.PodTemplate(map[string]string{"app": w.name})
	template.Annotations = w.template
	if w.read != nil {
		w.read(&template.Spec)
	}
	for _, k := range kinds {
		if w.String() != k.name+"/"+w.name {
			continue
		}
		testkit.Must(r, k.create(r, meta, template))
	}
}

// write writes a source with all of its data, whether it is there or not.
func (r *rig) write(kind events.Kind, name string, data map[string]string) {
	r.Helper()
	if kind == events.KindSecret {
		r.secret(name, data)
		return
	}
	r.configMap(name, data)
}

// source is the metadata of a source.
func (r *rig) source(kind events.Kind, name string) metav1.Object {
	r.Helper()
	var object metav1.Object
	var err error
	core := r.client.CoreV1()
	if kind == events.KindSecret {
		object, err = core.Secrets(r.namespace).Get(r.Context(), name, metav1.GetOptions{})
	} else {
		object, err = core.ConfigMaps(r.namespace).Get(r.Context(), name, metav1.GetOptions{})
	}
	testkit.Must(r, err)
	return object
}

// set changes one key of a source and nothing else.
func (r *rig) set(kind events.Kind, name, key, value string) {
	r.Helper()
	if kind == events.KindSecret {
		r.patch(kind, name, map[string]any{"stringData": map[string]any{key: value}})
		return
	}
	r.patch(kind, name, map[string]any{"data": map[string]any{key: value}})
}

// unset removes one key of a source.
func (r *rig) unset(kind events.Kind, name, key string) {
	r.Helper()
	r.patch(kind, name, map[string]any{"data": map[string]any{key: nil}})
}

// annotate and label change one annotation or label of a source. Nil removes it.
func (r *rig) annotate(kind events.Kind, name, annotation string, value any) {
	r.Helper()
	r.patch(kind, name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: value}}})
}

func (r *rig) label(kind events.Kind, name, label string, value any) {
	r.Helper()
	r.patch(kind, name, map[string]any{"metadata": map[string]any{"labels": map[string]any{label: value}}})
}

// patch makes a merge patch of a source.
func (r *rig) patch(kind events.Kind, name string, patch map[string]any) {
	r.Helper()
	body, err := json.Marshal(patch)
	testkit.Must(r, err)
	core := r.client.CoreV1()
	if kind == events.KindSecret {
		_, err = core.Secrets(r.namespace).Patch(r.Context(), name, types.MergePatchType, body, metav1.PatchOptions{})
	} else {
		_, err = core.ConfigMaps(r.namespace).Patch(r.Context(), name, types.MergePatchType, body, metav1.PatchOptions{})
	}
	testkit.Must(r, err)
}

// remove deletes a source.
func (r *rig) remove(kind events.Kind, name string) {
	r.Helper()
	var err error
	core := r.client.CoreV1()
	if kind == events.KindSecret {
		err = core.Secrets(r.namespace).Delete(r.Context(), name, metav1.DeleteOptions{})
	} else {
		err = core.ConfigMaps(r.namespace).Delete(r.Context(), name, metav1.DeleteOptions{})
	}
	testkit.Must(r, err)
}

// templateCause is the cause on the pod template of a StatefulSet.
func (r *rig) templateCause(name string) string {
	r.Helper()
	return r.stateful(r.Context(), name).Spec.Template.Annotations["keyturn.dev/cause"]
}
