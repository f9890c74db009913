package install

import (
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/keyturn/keyturn/tests/testkit"
)

// cannotAsk holds that whoever takes over a sidecar of a pod has nothing with which the API server knows them: it presents each variable and each
// file of its volumes as a token.
func (k *kubelet) cannotAsk(pod *corev1.Pod) {
	k.Helper()
	for _, container := range pod.Spec.InitContainers {
		has := map[string]string{}
		for name, value := range k.environment(pod, container) {
			has["variable "+name] = value
		}
		for _, mount := range container.VolumeMounts {
			for _, volume := range pod.Spec.Volumes {
				if volume.Name != mount.Name {
					continue
				}
				if hasToken(volume) {
					k.Errorf("container %s of %s mounts the token of the account", container.Name, pod.Name)
					continue
				}
				for name, content := range k.files(pod, volume) {
					has["file "+mount.MountPath+"/"+name] = string(content)
				}
			}
		}
		for what, text := range has {
			token := strings.TrimSpace(text)
			if token == "" || strings.ContainsAny(token, " \t\r\n") {
				continue // It cannot be in a header.
			}
			if name, isKnown := k.whoHas(token); isKnown {
				k.Errorf("with %s of container %s one is %s at the API server", what, container.Name, name)
			}
		}
	}
}

// whoHas returns whom the API server takes somebody with a token for, if for anybody.
func (k *kubelet) whoHas(token string) (name string, isKnown bool) {
	k.Helper()
	config := rest.AnonymousClientConfig(plane.Config())
	config.BearerToken = token
	reviews := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews()
	review, err := reviews.Create(k.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return "", false
	}
	testkit.Must(k, err)
	return review.Status.UserInfo.Username, true
}
