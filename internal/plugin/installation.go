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

	"github.com/keyturn/keyturn/internal/bus"
)

const (
	// usualNamespace is the namespace in which an installation is searched for first.
	usualNamespace = "keyturn-system"
	// actuatorSelector selects the actuator and its pods, however it was installed.
	actuatorSelector = "app.kubernetes.io/name=keyturn-actuator"
)

// installation is an installation of Keyturn, with the configuration of its actuator.
type installation struct {
	client    kubernetes.Interface
	namespace string
	actuator  *appsv1.StatefulSet
	container *corev1.Container
	// environment has the variables of the container, which are all that commands in the pod see. settings also has the arguments of the
	// program, under the names of their variables; arguments take precedence.
	environment, settings map[string]string
}

// find finds the installation in a namespace. If namespace is empty, it searches the usual one first, and then all.
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
		names := make([]string, len(actuators))
		for i := range actuators {
			names[i] = actuators[i].Namespace
		}
		slices.Sort(names)
		return nil, fmt.Errorf("more than one installation, choose with --installation: %s", strings.Join(names, ", "))
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

func (i *installation) embedsNATS() bool { return i.settings["KEYTURN_NATS_EMBEDDED"] == "true" }

// externalNATS describes for people the NATS that is used if it is not embedded. Its address may be in a Secret, and so unknown.
func (i *installation) externalNATS() string {
	at, err := bus.Redact(i.settings["KEYTURN_NATS_URL"])
	if err != nil {
		return "a NATS of its own"
	}
	return "the NATS at " + at
}

// pod returns the pod of the actuator whose NATS most likely responds: it prefers pods that are not being deleted, and of these, ready ones.
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

// worth ranks pods by how likely their NATS responds and continues to.
func worth(pod *corev1.Pod) (rank int) {
	if pod.DeletionTimestamp == nil {
		rank += 2
	}
	if isReady(pod) {
		rank++
	}
	return rank
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
