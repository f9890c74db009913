package testbed

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// makeNode creates the node whose pods kwok simulates, with room for 100,000 pods.
func (cp *ControlPlane) makeNode(ctx context.Context) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("10k"),
		corev1.ResourceMemory: resource.MustParse("100Ti"),
		corev1.ResourcePods:   resource.MustParse("100k"),
	}
	const name = "node-0"
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
	_, err := cp.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	// A folder that was used before already has the node.
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the node: %w", err)
	}
	return nil
}

// waitUsable waits for what tests rely on and what the servers only do after they are ready: nodes that accept pods, and a
// service account for the pods of the namespace "default".
func (cp *ControlPlane) waitUsable(ctx context.Context) error {
	if !cp.opts.WithoutControllers {
		if err := cp.waitServiceAccount(ctx, metav1.NamespaceDefault); err != nil {
			return err
		}
	}
	// kwok makes a node ready, and the controllers remove its initial taint.
	if cp.opts.WithoutKwok || cp.opts.WithoutControllers {
		return nil
	}
	usable := func(ctx context.Context) (bool, error) {
		nodes, err := cp.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, node := range nodes.Items {
			if len(node.Spec.Taints) > 0 || !nodeReady(node) {
				return false, nil
			}
		}
		return true, nil
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, process.StartTimeout, true, usable)
	if err != nil {
		return fmt.Errorf("wait for the nodes: %w", err)
	}
	return nil
}

func nodeReady(node corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// waitServiceAccount waits for the account that a controller creates in every new namespace. Until it exists, the API server
// refuses pods in the namespace.
func (cp *ControlPlane) waitServiceAccount(ctx context.Context, namespace string) error {
	exists := func(ctx context.Context) (bool, error) {
		_, err := cp.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	}
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, process.StartTimeout, true, exists)
	if err != nil {
		return fmt.Errorf("wait for the default service account of %s: %w", namespace, err)
	}
	return nil
}
