package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/bus"
)

const (
	// usualNamespace is the namespace in which an installation is first searched.
	usualNamespace = "keyturn-system"
	// actuatorSelector selects the actuator and its pods, however it was installed, and singleSelector the program that runs a whole installation.
	actuatorSelector = "app.kubernetes.io/name=keyturn-actuator"
	singleSelector   = "app.kubernetes.io/name=keyturn"
)

// installation is an installation of Keyturn, with the configuration of its actuator.
type installation struct {
	client    kubernetes.Interface
	namespace string
	// name is the name of its StatefulSet or Deployment.
	name string
	// single says that one Deployment runs watcher, actuator and NATS in one process, instead of a StatefulSet for the actuator and NATS.
	single bool
	// pods are the pods of the actuator, and container is its container in them.
	pods      *corev1.PodSpec
	container *corev1.Container
	// environment contains the variables of the container, which are all that commands in the pod see. settings also contains the arguments of the
	// program, under the names of their variables; arguments take precedence.
	environment, settings map[string]string
	// unverified says that the certificate of its NATS is not verified, because the user may not read the CA.
	unverified bool
}

// find finds the installation in a namespace. If namespace is empty, it searches the usual one first, and then all.
func find(ctx context.Context, client kubernetes.Interface, namespace string) (*installation, error) {
	found, err := listInstallations(ctx, client, cmp.Or(namespace, usualNamespace))
	if namespace == "" && (len(found) == 0 || apierrors.IsForbidden(err)) {
		if found, err = listInstallations(ctx, client, metav1.NamespaceAll); apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("%w; or name its namespace with --installation", right{"list", "statefulsets.apps", "", ""}.explain(err))
		}
	}
	switch {
	case err != nil:
		return nil, right{"list", "statefulsets.apps", "", namespace}.explain(err)
	case len(found) == 0 && namespace == "":
		return nil, fmt.Errorf("no installation found: no namespace has %s", sought)
	case len(found) == 0:
		return nil, fmt.Errorf("no installation in namespace %s: it has no %s", namespace, sought)
	case len(found) > 1:
		names := make([]string, len(found))
		for i := range found {
			names[i] = found[i].namespace
		}
		slices.Sort(names)
		return nil, fmt.Errorf("more than one installation, choose with --installation: %s", strings.Join(names, ", "))
	}
	i := found[0]
	at := slices.IndexFunc(i.pods.Containers, func(c corev1.Container) bool { return c.Name == i.program() })
	if at < 0 {
		return nil, fmt.Errorf("the pods of %s in namespace %s have no container named %s", i.selector(), i.namespace, i.program())
	}
	i.container = &i.pods.Containers[at]
	return i, i.readSettings(ctx)
}

const sought = "a StatefulSet with the label " + actuatorSelector + ", or a Deployment with " + singleSelector

// listInstallations lists the actuators or, if there are none, the programs that run a whole installation.
func listInstallations(ctx context.Context, client kubernetes.Interface, namespace string) ([]*installation, error) {
	actuators, err := client.AppsV1().StatefulSets(namespace).List(ctx, metav1.ListOptions{LabelSelector: actuatorSelector})
	if err != nil {
		return nil, err
	}
	var found []*installation
	for i := range actuators.Items {
		one := &actuators.Items[i]
		found = append(found, &installation{client: client, namespace: one.Namespace, name: one.Name, pods: &one.Spec.Template.Spec})
	}
	if len(found) > 0 {
		return found, nil
	}
	singles, err := client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{LabelSelector: singleSelector})
	if apierrors.IsForbidden(err) {
		return nil, nil // There may be none.
	}
	if err != nil {
		return nil, err
	}
	for i := range singles.Items {
		one := &singles.Items[i]
		found = append(found, &installation{client: client, namespace: one.Namespace, name: one.Name, single: true, pods: &one.Spec.Template.Spec})
	}
	return found, nil
}

// String describes the installation.
func (i *installation) String() string {
	kind := "StatefulSet"
	if i.single {
		kind = "Deployment"
	}
	return "the " + kind + " " + i.name + " in namespace " + i.namespace
}

// program is the name of the container.
func (i *installation) program() string {
	if i.single {
		return "keyturn"
	}
	return "actuator"
}

func (i *installation) selector() string {
	if i.single {
		return singleSelector
	}
	return actuatorSelector
}

// embedsNATS reports whether the pods have a NATS, beside the actuator or in its process.
func (i *installation) embedsNATS() bool {
	return i.single || i.natsContainer() != nil || i.settings["KEYTURN_NATS_STORE_DIR"] != ""
}

// natsContainer returns the container of the NATS beside the actuator, or nil if there is none.
func (i *installation) natsContainer() *corev1.Container {
	for _, containers := range [][]corev1.Container{i.pods.InitContainers, i.pods.Containers} {
		for c := range containers {
			if containers[c].Name == "nats" {
				return &containers[c]
			}
		}
	}
	return nil
}

// externalNATS describes for users the NATS that is not embedded. Its address may be in a Secret, and so unknown.
func (i *installation) externalNATS() string {
	at, err := bus.Redact(i.settings["KEYTURN_NATS_URL"])
	if err != nil {
		return "a NATS of its own"
	}
	return "the NATS at " + at
}

// pod returns the pod of the actuator whose NATS most likely responds: preferably a pod that is not being deleted, and of these a ready one.
func (i *installation) pod(ctx context.Context) (string, error) {
	list, err := i.client.CoreV1().Pods(i.namespace).List(ctx, metav1.ListOptions{LabelSelector: i.selector()})
	if err != nil {
		return "", right{"list", "pods", "", i.namespace}.explain(err)
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning && !isReady(&p) })
	if len(pods) == 0 {
		return "", fmt.Errorf("no pod of the %s runs in namespace %s: see kubectl -n %[2]s get pods -l %s", i.program(), i.namespace, i.selector())
	}
	return slices.MaxFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(worth(&a), worth(&b)) }).Name, nil
}

// worth ranks pods by how likely their NATS is to respond.
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
