package inplace

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pods says which pods are told, and where.
type Pods struct {
	Namespace string
	// Selector is their label selector, and Controller the UID of their controller. Empty: they belong to ReplicaSets.
	Selector, Controller string
	Port                 uint16
	// Path begins with a slash, and is escaped as in a URL.
	Path string
	// name is that of the only one that is looked for. Empty: all.
	name string
	// Refreshed is when the files of older pods were certainly refreshed. Pods that were created well after it have read them so.
	Refreshed time.Time
}

const (
	// page is how many pods are read at a time.
	page = 500
	// clockMargin is how far the clocks of the API server and of this process may be apart.
	clockMargin = 10 * time.Second
)

// pod is a pod that is to be told.
type pod struct {
	name    string
	uid     types.UID
	address netip.Addr
}

// find lists the pods that are to be told: those that run. A pod whose containers have not started reads the files later, and one that is being
// deleted does not matter any more.
func (t *Teller) find(ctx context.Context, pods Pods) ([]pod, error) {
	var found []pod
	options := metav1.ListOptions{LabelSelector: pods.Selector, FieldSelector: "status.phase=" + string(corev1.PodRunning), Limit: page}
	if pods.name != "" {
		options.FieldSelector += ",metadata.name=" + pods.name
	}
	for {
		list, err := t.client.CoreV1().Pods(pods.Namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing pods: %w", err)
		}
		for i := range list.Items {
			p := &list.Items[i]
			if !pods.include(p) {
				continue
			}
			address, err := addressOf(p)
			if err != nil {
				return nil, fmt.Errorf("pod %s: %w", p.Name, err)
			}
			found = append(found, pod{p.Name, p.UID, address})
		}
		if list.Continue == "" {
			return found, nil
		}
		options.Continue = list.Continue
	}
}

// isGone reports whether a pod is certainly none of those that are to be told any more.
func (t *Teller) isGone(ctx context.Context, p pod, pods Pods) bool {
	pods.name = p.name
	found, err := t.find(ctx, pods)
	return err == nil && !slices.ContainsFunc(found, func(other pod) bool { return other.uid == p.uid })
}

// include reports whether a pod is one of those that are to be told.
func (p Pods) include(of *corev1.Pod) bool {
	if of.Status.Phase != corev1.PodRunning || of.DeletionTimestamp != nil || of.CreationTimestamp.After(p.Refreshed.Add(clockMargin)) {
		return false
	}
	controller := metav1.GetControllerOfNoCopy(of)
	switch {
	case controller == nil:
		return false
	case p.Controller == "":
		// The ReplicaSet of another Deployment has other labels: both would fight for its pods otherwise.
		return controller.Kind == "ReplicaSet"
	}
	return string(controller.UID) == p.Controller
}

var (
	errNodeAddress = errors.New("it has the address of its node")
	errAddress     = errors.New("it has no address that a pod can have")
)

// addressOf returns the address of a pod. It refuses what leads elsewhere, whoever wrote that into the status: this process, the node and its
// metadata service.
func addressOf(p *corev1.Pod) (netip.Addr, error) {
	address, err := netip.ParseAddr(p.Status.PodIP)
	switch {
	case err != nil || !address.IsGlobalUnicast() || address.Zone() != "":
		return netip.Addr{}, errAddress
	case p.Spec.HostNetwork || p.Status.PodIP == p.Status.HostIP:
		return netip.Addr{}, errNodeAddress
	}
	return address.Unmap(), nil
}
