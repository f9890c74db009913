package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// usualNamespace is where an installation is looked for first.
	usualNamespace = "keyturn-system"
	// actuatorSelector finds the actuator of each way to install it, and its pods.
	actuatorSelector = "app.kubernetes.io/name=keyturn-actuator"
)

// installation is Keyturn in the cluster, as its actuator is configured.
type installation struct {
	client    kubernetes.Interface
	namespace string
	actuator  *appsv1.StatefulSet
	container *corev1.Container
	// environment has the variables of the container, which are all that the commands in the pod have. In settings, the arguments of the program
	// take precedence over them, under the names of their variables.
	environment, settings map[string]string
}

// find finds the installation in a namespace. Empty looks in the usual one, and if there is none, in all.
func find(ctx context.Context, client kubernetes.Interface, namespace string) (*installation, error) {
	actuators, err := listActuators(ctx, client, cmp.Or(namespace, usualNamespace))
	if namespace == "" && (len(actuators) == 0 || apierrors.IsForbidden(err)) {
		if actuators, err = listActuators(ctx, client, metav1.NamespaceAll); apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("%w; or name its namespace with --installation", right{"list", "statefulsets.apps", ""}.explain(err))
		}
	}
	switch {
	case err != nil:
		return nil, right{"list", "statefulsets.apps", namespace}.explain(err)
	case len(actuators) == 0 && namespace == "":
		return nil, errors.New("no installation found: no namespace has a StatefulSet with the label " + actuatorSelector)
	case len(actuators) == 0:
		return nil, fmt.Errorf("no installation in namespace %s: it has no StatefulSet with the label %s", namespace, actuatorSelector)
	case len(actuators) > 1:
		return nil, fmt.Errorf("more than one installation, choose with --installation: %s", strings.Join(namespacesOf(actuators), ", "))
	}
	i := &installation{client: client, namespace: actuators[0].Namespace, actuator: &actuators[0]}
	containers := i.actuator.Spec.Template.Spec.Containers
	at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == "actuator" })
	if at < 0 {
		return nil, fmt.Errorf("statefulset/%s in namespace %s has no container named actuator", i.actuator.Name, i.namespace)
	}
	i.container = &containers[at]
	return i, i.readSettings(ctx)
}

func listActuators(ctx context.Context, client kubernetes.Interface, namespace string) ([]appsv1.StatefulSet, error) {
	list, err := client.AppsV1().StatefulSets(namespace).List(ctx, metav1.ListOptions{LabelSelector: actuatorSelector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func namespacesOf(actuators []appsv1.StatefulSet) []string {
	names := make([]string, 0, len(actuators))
	for i := range actuators {
		names = append(names, actuators[i].Namespace)
	}
	slices.Sort(names)
	return names
}

// embedsNATS reports whether the server is in the actuator's pods.
func (i *installation) embedsNATS() bool { return i.settings["KEYTURN_NATS_EMBEDDED"] == "true" }

// externalNATS says for people which NATS is used that is not in the actuator's pods. Its address may be in a Secret.
func (i *installation) externalNATS() string {
	at, err := events.Redact(i.settings["KEYTURN_NATS_URL"])
	if err != nil {
		return "a NATS of its own"
	}
	return "the NATS at " + at
}

// pod returns a pod of the actuator whose NATS answers: one that is ready, if there is one, and rather one that stays than one that is being deleted.
func (i *installation) pod(ctx context.Context) (string, error) {
	list, err := i.client.CoreV1().Pods(i.namespace).List(ctx, metav1.ListOptions{LabelSelector: actuatorSelector})
	if err != nil {
		return "", right{"list", "pods", i.namespace}.explain(err)
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning && !isReady(&p) })
	if len(pods) == 0 {
		return "", fmt.Errorf("no pod of the actuator runs in namespace %s: see kubectl -n %[1]s get pods -l %s", i.namespace, actuatorSelector)
	}
	return slices.MaxFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(worth(&a), worth(&b)) }).Name, nil
}

// worth orders pods by how likely it is that their NATS answers, and goes on to.
func worth(pod *corev1.Pod) int {
	switch ready, stays := isReady(pod), pod.DeletionTimestamp == nil; {
	case ready && stays:
		return 3
	case stays:
		return 2
	case ready:
		return 1
	}
	return 0
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
