//go:build !race

package actuate_test

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// aspect is one thing about a workload: what its pods read, or an annotation.
type aspect func(*metav1.ObjectMeta, *corev1.PodTemplateSpec)

// auto lets a workload roll on all that its pods read.
var auto = annotated(workload.AnnotationRollOn, "auto")

// on lets a workload roll on what the annotation names.
func on(sources string) aspect { return annotated(workload.AnnotationRollOn, sources) }

// annotated gives a workload an annotation.
func annotated(key, value string) aspect {
	return func(object *metav1.ObjectMeta, _ *corev1.PodTemplateSpec) {
		metav1.SetMetaDataAnnotation(object, key, value)
	}
}

// reads lets the pods read all of a source, "secret/db", one of its keys, "secret/db#password", or an optional source, "configmap/app?", as variables.
func reads(sources ...string) aspect {
	return func(_ *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
		container := &pod.Spec.Containers[0]
		for _, text := range sources {
			text, optional := strings.CutSuffix(text, "?")
			text, key, one := strings.Cut(text, "#")
			kind, name, _ := strings.Cut(text, "/")
			reference := corev1.LocalObjectReference{Name: name}
			var all corev1.EnvFromSource
			var value corev1.EnvVarSource
			switch kind {
			case "secret":
				all.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: reference, Optional: &optional}
				value.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: reference, Key: key, Optional: &optional}
			case "configmap":
				all.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: reference, Optional: &optional}
				value.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: reference, Key: key, Optional: &optional}
			default:
				panic("no such kind of source: " + text)
			}
			if one {
				container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VALUE_%d", len(container.Env)), ValueFrom: &value})
			} else {
				container.EnvFrom = append(container.EnvFrom, all)
			}
		}
	}
}

// workload makes a workload, named as in a want: "web" is a Deployment of the scene's namespace, "office/statefulset/db" a StatefulSet of another one.
func (c *cluster) workload(name string, aspects ...aspect) {
	c.t.Helper()
	id := parse(name)
	object := metav1.ObjectMeta{Namespace: id.namespace, Name: id.name}
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}}}}
	for _, aspect := range aspects {
		aspect(&object, &pod)
	}
	one := int32(1)
	var made runtime.Object
	switch id.kind {
	case "deployment":
		made = &appsv1.Deployment{ObjectMeta: object, Spec: appsv1.DeploymentSpec{Replicas: &one, Template: pod}}
	case "statefulset":
		made = &appsv1.StatefulSet{ObjectMeta: object, Spec: appsv1.StatefulSetSpec{Replicas: &one, Template: pod}}
	case "daemonset":
		made = &appsv1.DaemonSet{ObjectMeta: object, Spec: appsv1.DaemonSetSpec{Template: pod}}
	case "cronjob":
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		made = &batchv1.CronJob{ObjectMeta: object, Spec: batchv1.CronJobSpec{
			Schedule: "@yearly", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pod}},
		}}
	default:
		c.t.Fatalf("no such kind of workload: %s", name)
	}
	c.create(made)
}

// identity is what the name of a workload in a scene says.
type identity struct{ kind, namespace, name string }

func (id identity) resource() schema.GroupVersionResource {
	group := appsv1.SchemeGroupVersion
	if id.kind == "cronjob" {
		group = batchv1.SchemeGroupVersion
	}
	return group.WithResource(id.kind + "s")
}

// parse is the inverse of nameOf.
func parse(name string) identity {
	id := identity{kind: "deployment", namespace: namespace}
	parts := strings.Split(name, "/")
	id.name = parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		switch part {
		case "deployment", "statefulset", "daemonset", "cronjob":
			id.kind = part
		default:
			id.namespace = part
		}
	}
	return id
}

// create makes an object, as a client does.
func (c *cluster) create(object runtime.Object) {
	c.t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	testkit.Must(c.t, err)
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.add(resource, object); err != nil {
		c.t.Fatal(err)
	}
}

// edit changes a workload, as a person or a tool does.
func (c *cluster) edit(name string, aspects ...aspect) {
	c.t.Helper()
	c.change(name, func(object runtime.Object) {
		edited, pod := partsOf(object)
		for _, aspect := range aspects {
			aspect(edited, pod)
		}
	})
}

// without removes an annotation.
func without(key string) aspect {
	return func(object *metav1.ObjectMeta, _ *corev1.PodTemplateSpec) { delete(object.Annotations, key) }
}

// image is what a release changes.
func image(name string) aspect {
	return func(_ *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) { pod.Spec.Containers[0].Image = name }
}

// change changes an object of a workload.
func (c *cluster) change(name string, how func(runtime.Object)) {
	c.t.Helper()
	id := parse(name)
	c.rewrite(id.resource(), id.namespace, id.name, "", how)
}

// rewrite changes an object, or one of its subresources if that is not empty.
func (c *cluster) rewrite(resource schema.GroupVersionResource, namespace, name, subresource string, how func(runtime.Object)) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	before, err := c.storage.Get(resource, namespace, name)
	testkit.Must(c.t, err)
	after := before.DeepCopyObject()
	how(after)
	testkit.Must(c.t, c.store(resource, before, after, subresource))
}

// delete deletes a workload.
func (c *cluster) delete(name string) {
	c.t.Helper()
	id := parse(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	testkit.Must(c.t, c.remove(id.resource(), id.namespace, id.name))
}

// object returns the object of a workload.
func (c *cluster) object(name string) runtime.Object {
	c.t.Helper()
	id := parse(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	object, err := c.storage.Get(id.resource(), id.namespace, id.name)
	testkit.Must(c.t, err)
	return object.DeepCopyObject()
}

// annotation returns an annotation of a workload, empty if it has none.
func (c *cluster) annotation(name, key string) string {
	c.t.Helper()
	return metaOf(c.object(name)).GetAnnotations()[key]
}

// podAnnotation returns an annotation of the pod template of a workload, empty if it has none.
func (c *cluster) podAnnotation(name, key string) string {
	c.t.Helper()
	_, pod := partsOf(c.object(name))
	return pod.Annotations[key]
}

// refuse lets the API server refuse all patches of a workload, until the error is nil.
func (c *cluster) refuse(name string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusals[name] = err
}

// stall keeps the rollouts of workloads from making progress, and finish lets those of one end.
func (c *cluster) stall(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.stalled[name] = true
	}
}

func (c *cluster) finish(name string) {
	c.t.Helper()
	c.mu.Lock()
	c.stalled[name] = false
	c.mu.Unlock()
	c.change(name, func(runtime.Object) {})
}

// fail says, as the controller of a Deployment does, that its rollout has failed.
func (c *cluster) fail(name string) {
	c.t.Helper()
	c.overwrite(name, func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
		}}
	})
}

// alter changes a Deployment in a way that no aspect describes.
func (c *cluster) alter(name string, how func(*appsv1.Deployment)) {
	c.t.Helper()
	c.change(name, func(object runtime.Object) { how(c.deployment(object)) })
}

// overwrite replaces a Deployment as its controller does that reports a status, or a restore of etcd: no controller acts on it, and its generation is
// what it says.
func (c *cluster) overwrite(name string, how func(*appsv1.Deployment)) {
	c.t.Helper()
	id := parse(name)
	c.rewrite(id.resource(), id.namespace, id.name, "status", func(object runtime.Object) { how(c.deployment(object)) })
}

func (c *cluster) deployment(object runtime.Object) *appsv1.Deployment {
	c.t.Helper()
	deployment, ok := object.(*appsv1.Deployment)
	if !ok {
		c.t.Fatalf("%T is no Deployment", object)
	}
	return deployment
}

// partsOf returns the parts of a workload that an aspect changes.
func partsOf(object runtime.Object) (*metav1.ObjectMeta, *corev1.PodTemplateSpec) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &o.ObjectMeta, &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.ObjectMeta, &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.ObjectMeta, &o.Spec.Template
	case *batchv1.CronJob:
		return &o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template
	default:
		panic(fmt.Sprintf("%T is no workload", object))
	}
}
