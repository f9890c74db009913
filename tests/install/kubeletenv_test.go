package install

import (
	"maps"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

// reference is a variable in the value of another one, or in an argument.
var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

func (k *kubelet) environment(pod *corev1.Pod, container corev1.Container) map[string]string {
	k.Helper()
	env := map[string]string{}
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef != nil {
			maps.Copy(env, k.configMap(from.ConfigMapRef.Name))
			continue
		}
		for name, value := range k.optionalSecret(from.SecretRef) {
			env[name] = string(value)
		}
	}
	for _, variable := range container.Env {
		value := expand(variable.Value, env)
		if from := variable.ValueFrom; from != nil {
			value = k.valueFrom(pod, from)
		}
		env[variable.Name] = value
	}
	return env
}

// expand returns a text with variables in place of the references to them.
func expand(text string, env map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string { return env[ref[2:len(ref)-1]] })
}

func (k *kubelet) valueFrom(pod *corev1.Pod, from *corev1.EnvVarSource) string {
	k.Helper()
	switch {
	case from.SecretKeyRef != nil:
		return string(k.secret(from.SecretKeyRef.Name)[from.SecretKeyRef.Key])
	case from.FieldRef != nil:
		fields := map[string]string{"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "metadata.uid": string(pod.UID)}
		if value, ok := fields[from.FieldRef.FieldPath]; ok {
			return value
		}
	}
	if from := from.ResourceFieldRef; from != nil {
		if resource, limits := strings.CutPrefix(from.Resource, "limits."); limits && from.Divisor.Value() == 1 {
			quantity := pod.Spec.Containers[0].Resources.Limits[corev1.ResourceName(resource)]
			return strconv.FormatInt(quantity.Value(), 10)
		}
	}
	k.Fatalf("a variable of %s comes from %v", pod.Name, from)
	return ""
}

func (k *kubelet) secret(name string) map[string][]byte {
	k.Helper()
	secret, err := k.client.CoreV1().Secrets(k.namespace).Get(k.Context(), name, metav1.GetOptions{})
	testkit.Must(k, err)
	return secret.Data
}

// optionalSecret returns what a Secret has, if there is one, and fails if it must be there.
func (k *kubelet) optionalSecret(from *corev1.SecretEnvSource) map[string][]byte {
	k.Helper()
	if from == nil || from.Optional == nil || !*from.Optional {
		k.Fatalf("variables come from %v, want a Secret that need not be there", from)
	}
	secret, err := k.client.CoreV1().Secrets(k.namespace).Get(k.Context(), from.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		k.Fatal(err)
	}
	return secret.Data
}

func (k *kubelet) configMap(name string) map[string]string {
	k.Helper()
	configMap, err := k.client.CoreV1().ConfigMaps(k.namespace).Get(k.Context(), name, metav1.GetOptions{})
	testkit.Must(k, err)
	return configMap.Data
}

// configFiles are a ConfigMap as files.
func (k *kubelet) configFiles(name string) map[string][]byte {
	k.Helper()
	files := map[string][]byte{}
	for name, content := range k.configMap(name) {
		files[name] = []byte(content)
	}
	return files
}
