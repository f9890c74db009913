package inplace

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pods selects the pods to ask, and the endpoint.
type Pods struct {
	Namespace string
	// Selector is the label selector of the pods.
	Selector string
	// Controller is the UID of the pods' controller. If empty, the pods belong to the ReplicaSets of the Deployment whose name is Deployment.
	Controller, Deployment string
	Port                   uint16
	// Path begins with a slash, and is escaped as in a URL.
	Path string
	// name restricts the pods to one. Empty means all of them.
	name string
	// Refreshed is when the kubelets have refreshed the files of running pods. Pods that were created well after that started with the new files.
	Refreshed time.Time
	// Begin is called before the first pod is asked. If it returns an error, no pod is asked. Required.
	Begin func() error
}

const (
	// unfinished selects the pods that have not finished.
	unfinished = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)
	// page is the number of pods in one request.
	page = 500
	// clockMargin is the maximum difference between the clocks of the API server and this process.
	clockMargin = 10 * time.Second
)

// pod is a pod to ask.
type pod struct {
	name    string
	uid     types.UID
	address netip.Addr
	ready   bool
}

// find lists the pods that may have read the files, and so must be asked. A pod that is scheduled to a node may have read or mounted them even if not
// all of its containers have started.
func (c *Client) find(ctx context.Context, pods Pods) ([]pod, error) {
	var found []pod
	own, others := false, false
	options := metav1.ListOptions{LabelSelector: pods.Selector, FieldSelector: unfinished, Limit: page}
	if pods.name != "" {
		options.FieldSelector += ",metadata.name=" + pods.name
	}
	for {
		list, err := c.client.CoreV1().Pods(pods.Namespace).List(ctx, options)
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) {
			return nil, fmt.Errorf("listing pods: %w", err) // Another attempt would fail, too.
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotListed, err)
		}
		for i := range list.Items {
			p := &list.Items[i]
			isOwn := pods.own(p)
			own = own || isOwn
			switch {
			case !pods.include(p):
			case isOwn:
				one, err := newPod(p)
				if err != nil {
					return nil, err
				}
				found = append(found, one)
			case pods.mayOwn(p):
				others = true
			}
		}
		switch {
		case list.Continue != "":
		case others && !own && pods.name == "":
			return nil, errOthers
		default:
			return found, nil
		}
		options.Continue = list.Continue
	}
}

// newPod returns a pod to ask, or an error if the pod has no address that may be called.
func newPod(p *corev1.Pod) (pod, error) {
	address, err := addressOf(p)
	if err != nil && p.Status.PodIP == "" {
		err = ErrStarting
	}
	if err != nil {
		return pod{}, fmt.Errorf("pod %s: %w", p.Name, err)
	}
	return pod{p.Name, p.UID, address, isReady(p)}, nil
}

// judge returns the error for a pod that did not confirm. It is nil if the pod was deleted, and wraps ErrStarting if the pod is not ready.
func (c *Client) judge(ctx context.Context, p pod, pods Pods, cause error) error {
	pods.name = p.name
	found, err := c.find(ctx, pods)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(found, func(other pod) bool { return other.uid == p.uid })
	switch {
	case i < 0:
		return nil
	case !found[i].ready:
		cause = fmt.Errorf("%w: %w", ErrStarting, cause)
	}
	return fmt.Errorf("pod %s: %w", p.name, cause)
}

// include reports whether a pod may have read the files: it has mounted them, and is not newer.
func (p Pods) include(of *corev1.Pod) bool {
	hasMounted := of.Status.Phase == corev1.PodRunning || of.Spec.NodeName != ""
	return of.DeletionTimestamp == nil && hasMounted && !of.CreationTimestamp.After(p.Refreshed.Add(clockMargin))
}

// own reports whether a pod belongs to the workload. Pods of another Deployment may have the same labels, and more.
func (p Pods) own(of *corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(of)
	if p.Controller != "" {
		return controller != nil && string(controller.UID) == p.Controller
	}
	return p.mayOwn(of) && controller.Name == p.Deployment+"-"+of.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
}

// mayOwn reports whether a pod may belong to the Deployment although its ReplicaSet is not named after it. A Deployment adopts the ReplicaSets of a
// deleted Deployment.
func (p Pods) mayOwn(of *corev1.Pod) bool {
	controller := metav1.GetControllerOfNoCopy(of)
	return p.Controller == "" && controller != nil && controller.APIVersion == "apps/v1" && controller.Kind == "ReplicaSet"
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// metadata lists the addresses of cloud providers' metadata services that are not link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd20:ce::254"),    // Google Cloud
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("100.100.100.200"), // Alibaba Cloud
}

// addressOf returns the address of a pod. As anyone might have written it into the status, addressOf refuses loopback and link-local addresses, those
// of the pod's node, and known metadata services. It cannot know whether the address belongs to another pod.
func addressOf(p *corev1.Pod) (netip.Addr, error) {
	address, err := netip.ParseAddr(p.Status.PodIP)
	if err != nil || address.Zone() != "" {
		return netip.Addr{}, errAddress
	}
	address = address.Unmap()
	if !address.IsGlobalUnicast() || slices.Contains(metadata, address) || p.Spec.HostNetwork || isOfNode(address, p) {
		return netip.Addr{}, errAddress
	}
	return address, nil
}

func isOfNode(address netip.Addr, p *corev1.Pod) bool {
	is := func(text string) bool {
		host, err := netip.ParseAddr(text)
		return err == nil && host.Unmap() == address
	}
	return is(p.Status.HostIP) || slices.ContainsFunc(p.Status.HostIPs, func(host corev1.HostIP) bool { return is(host.IP) })
}
