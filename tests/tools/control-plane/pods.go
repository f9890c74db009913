package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// pods takes each pod through its life, one step whenever it has changed.
type pods struct {
	client typedcorev1.CoreV1Interface
	lister corelisters.PodLister
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	node   *corev1.Node
	// addresses counts the addresses that were given to pods.
	addresses atomic.Uint32
}

func (p *pods) enqueue(object any) {
	if pod, ok := object.(*corev1.Pod); ok {
		p.queue.Add(cache.MetaObjectToName(pod))
	}
}

func (p *pods) work(ctx context.Context) {
	for {
		name, shutdown := p.queue.Get()
		if shutdown {
			return
		}
		// A pod that is gone needs nothing, and of one that was changed by somebody else there is an event.
		if err := p.step(ctx, name); err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			p.queue.Forget(name)
		} else {
			slog.ErrorContext(ctx, "a pod is stuck", "pod", name.String(), "err", err)
			p.queue.AddRateLimited(name)
		}
		p.queue.Done(name)
	}
}

// step takes a pod one step further, if there is one for it: it is bound, made ready, completed if it is a Job's, and deleted if somebody has
// deleted it. The phase says where it is, so a status that a test has set stays as it is. All requests fail if the pod is no longer the one
// that was read.
func (p *pods) step(ctx context.Context, name cache.ObjectName) error {
	pod, err := p.lister.Pods(name.Namespace).Get(name.Name)
	if err != nil {
		return err
	}
	switch deleted := pod.DeletionTimestamp != nil; {
	case pod.Spec.NodeName == "" && !deleted && p.fits(pod):
		return p.bind(ctx, pod)
	case pod.Spec.NodeName != p.node.Name:
		return nil
	case deleted:
		return p.remove(ctx, pod)
	case pod.Status.Phase == corev1.PodPending && !isReady(pod):
		return p.update(ctx, pod, running(pod, p.address(pod), metav1.Now()))
	case pod.Status.Phase == corev1.PodRunning && isOfJob(pod):
		return p.update(ctx, pod, succeeded(pod, metav1.Now()))
	}
	return nil
}

// fits reports whether the pod may be on the node. As with a scheduler it stays pending otherwise, for example if its nodeSelector has a label
// that the node has not.
func (p *pods) fits(pod *corev1.Pod) bool {
	matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(p.node)
	return matches && err == nil && len(pod.Spec.SchedulingGates) == 0
}

func (p *pods) bind(ctx context.Context, pod *corev1.Pod) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: p.node.Name},
	}
	if err := p.client.Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("bind the pod: %w", err)
	}
	return nil
}

func (p *pods) update(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	changed := pod.DeepCopy()
	changed.Status = status
	if _, err := p.client.Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write the status of the pod: %w", err)
	}
	return nil
}

// remove deletes a pod whose grace period has begun, like a kubelet whose containers have ended.
func (p *pods) remove(ctx context.Context, pod *corev1.Pod) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID}}
	if err := p.client.Pods(pod.Namespace).Delete(ctx, pod.Name, now); err != nil {
		return fmt.Errorf("delete the pod: %w", err)
	}
	return nil
}

// address returns a new address for a pod, of 10.128.0.0/9, where no Service has one.
func (p *pods) address(pod *corev1.Pod) string {
	if pod.Spec.HostNetwork {
		return nodeIP
	}
	n := p.addresses.Add(1)
	return netip.AddrFrom4([4]byte{10, byte(n>>16) | 0x80, byte(n >> 8), byte(n)}).String()
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func isOfJob(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "Job" })
}
