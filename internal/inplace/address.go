package inplace

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// metadata lists the addresses of cloud providers' metadata services that are not link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd20:ce::254"),    // Google Cloud
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("100.100.100.200"), // Alibaba Cloud
}

// addressOf returns the address of a pod. Anyone might have written it into the status, so addressOf refuses loopback and link-local addresses, those
// of the pod's node, and known metadata services. It cannot know whether the address belongs to another pod.
func addressOf(p *corev1.Pod) (netip.Addr, error) {
	address, err := netip.ParseAddr(p.Status.PodIP)
	if err != nil || address.Zone() != "" {
		return netip.Addr{}, errAddress
	}
	address = address.Unmap()
	switch {
	case !address.IsGlobalUnicast() || slices.Contains(metadata, address):
		return netip.Addr{}, errAddress
	case p.Spec.HostNetwork || isOfNode(address, p):
		return netip.Addr{}, errNodeAddress
	}
	return address, nil
}

// isOfNode reports whether an address is one of those of the pod's node.
func isOfNode(address netip.Addr, p *corev1.Pod) bool {
	is := func(text string) bool {
		host, err := netip.ParseAddr(text)
		return err == nil && host.Unmap() == address
	}
	return is(p.Status.HostIP) || slices.ContainsFunc(p.Status.HostIPs, func(host corev1.HostIP) bool { return is(host.IP) })
}
