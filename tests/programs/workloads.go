package programs

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// NewDeployment returns a Deployment of one container with the annotations. It is not created yet.
func NewDeployment(namespace, name string, replicas int32, annotations map[string]string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: PodTemplate(labels),
		},
	}
}

// PodTemplate returns the template of a pod with one container that reads nothing.
func PodTemplate(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "example.com/app:1"}},
		},
	}
}

// ReadSecret makes the container read all keys of a Secret.
func ReadSecret(template *corev1.PodTemplateSpec, name string) {
	container := &template.Spec.Containers[0]
	container.EnvFrom = append(container.EnvFrom, corev1.EnvFromSource{
		SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
	})
}

// MountSecret makes the container read a Secret as files.
func MountSecret(template *corev1.PodTemplateSpec, name string) {
	container := &template.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/etc/" + name})
	template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{
		Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}},
	})
}

// ReadSecretKey makes the container read one key of a Secret.
func ReadSecretKey(template *corev1.PodTemplateSpec, name, key string) {
	container := &template.Spec.Containers[0]
	container.Env = append(container.Env, corev1.EnvVar{Name: "FROM_" + key, ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key},
	}})
}

// ReadConfigMap makes the container read all keys of a ConfigMap.
func ReadConfigMap(template *corev1.PodTemplateSpec, name string) {
	container := &template.Spec.Containers[0]
	container.EnvFrom = append(container.EnvFrom, corev1.EnvFromSource{
		ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
	})
}

// ReadConfigMapKey makes the container read one key of a ConfigMap.
func ReadConfigMapKey(template *corev1.PodTemplateSpec, name, key string) {
	container := &template.Spec.Containers[0]
	container.Env = append(container.Env, corev1.EnvVar{Name: "FROM_" + key, ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key},
	}})
}

// SetSecret creates or updates a Secret.
func SetSecret(ctx context.Context, client kubernetes.Interface, namespace, name string, data map[string]string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: data}
	_, err := client.CoreV1().Secrets(namespace).Update(ctx, secret, metav1.UpdateOptions{})
	if err != nil {
		_, err = client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing secret %s: %w", name, err)
	}
	return nil
}

// SetConfigMap creates or updates a ConfigMap.
func SetConfigMap(ctx context.Context, client kubernetes.Interface, namespace, name string, data map[string]string) error {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	_, err := client.CoreV1().ConfigMaps(namespace).Update(ctx, configMap, metav1.UpdateOptions{})
	if err != nil {
		_, err = client.CoreV1().ConfigMaps(namespace).Create(ctx, configMap, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing configmap %s: %w", name, err)
	}
	return nil
}

// Revision returns the annotation that a rollout leaves on the pod template, empty if it was never rolled.
func Revision(template *corev1.PodTemplateSpec) string {
	return template.Annotations["keyturn.dev/revision"]
}
