package install

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// traffic is a connection as a NetworkPolicy sees it: a port of the server, and the peer, if it is one of our pods.
type traffic struct {
	ingress bool
	port    int
	peer    string
}

// keepsToItsPolicies holds that the NetworkPolicies let through the connections that the programs have, and that these are all that
// the programs have.
func (i *installation) keepsToItsPolicies() {
	i.Helper()
	if runtime.GOOS != "linux" {
		return // Connections of a process are not found elsewhere.
	}
	const apiServer, nats = 6443, 4222 // As they are in a cluster.
	tests := []struct {
		pod  []*programs.Program
		name string
		want []traffic
	}{
		{[]*programs.Program{i.watcher}, "keyturn-watcher", []traffic{{port: apiServer}, {port: nats, peer: "keyturn-actuator"}}},
		{
			i.podOfTheActuator(), "keyturn-actuator",
			[]traffic{{port: apiServer}, {port: nats, peer: "keyturn-watcher", ingress: true}},
		},
	}
	policies := i.policies()
	for _, tt := range tests {
		got := i.traffic(tt.pod)
		for _, one := range tt.want {
			if !slices.Contains(got, one) {
				i.Errorf("%s has no connection %+v: what is the rule for?", tt.name, one)
			}
		}
		for _, one := range got {
			if !slices.Contains(tt.want, one) {
				i.Errorf("%s has a connection that nobody expects: %+v", tt.name, one)
			}
			if !letsThrough(policies, tt.name, one) {
				i.Errorf("the policies of %s do not let through %+v", tt.name, one)
			}
		}
		if letsThrough(policies, tt.name, traffic{ingress: true, port: nats, peer: "somebody"}) {
			i.Errorf("the policies of %s let anybody in", tt.name)
		}
	}
}

// policies are those in the namespace of the programs.
func (i *installation) policies() []networkingv1.NetworkPolicy {
	i.Helper()
	list, err := i.kube.NetworkingV1().NetworkPolicies(programs.SystemNamespace).List(i.Context(), metav1.ListOptions{})
	testkit.Must(i, err)
	return list.Items
}

// letsThrough reports whether the policies of a pod allow a connection. A peer without a name is outside the cluster.
func letsThrough(policies []networkingv1.NetworkPolicy, pod string, one traffic) bool {
	for _, policy := range policies {
		if !selects(&policy.Spec.PodSelector, pod) {
			continue
		}
		if one.ingress {
			for _, rule := range policy.Spec.Ingress {
				if hasPort(rule.Ports, one.port) && hasPeer(rule.From, one.peer) {
					return true
				}
			}
			continue
		}
		for _, rule := range policy.Spec.Egress {
			if hasPort(rule.Ports, one.port) && hasPeer(rule.To, one.peer) {
				return true
			}
		}
	}
	return false
}

func selects(selector *metav1.LabelSelector, pod string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set{"app.kubernetes.io/name": pod, "app.kubernetes.io/part-of": "keyturn"})
}

func hasPort(ports []networkingv1.NetworkPolicyPort, port int) bool {
	return slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntValue() == port })
}

func hasPeer(peers []networkingv1.NetworkPolicyPeer, pod string) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.PodSelector != nil && p.NamespaceSelector == nil && selects(p.PodSelector, pod)
	})
}

// podOfTheActuator returns the actuator and what runs beside it.
func (i *installation) podOfTheActuator() []*programs.Program {
	return append(slices.Clone(i.kubelet.beside["actuator"]), i.actuator)
}

// traffic are the connections of the processes that have been started for a pod, with the ports that they would have in a cluster. Those within the
// pod, and those to a port that only this test asks, for health and metrics, are left out.
func (i *installation) traffic(pod []*programs.Program) []traffic {
	i.Helper()
	host, err := url.Parse(plane.Config().Host)
	testkit.Must(i, err)
	apiServer, nats := number(host.Port(), 10), number(after(i.kubelet.nats), 10)
	var found []traffic
	var sockets []socket
	for _, program := range pod {
		sockets = append(sockets, i.sockets(program.Pid())...)
	}
	listening, ours := map[int]bool{}, map[socket]bool{}
	for _, s := range sockets {
		if s.listening {
			listening[s.local] = true
		}
		ours[s] = true
	}
	for _, s := range sockets {
		switch {
		case s.listening, ours[socket{local: s.remote, remote: s.local}]:
		case s.local == nats:
			found = append(found, traffic{ingress: true, port: 4222, peer: "keyturn-watcher"})
		case listening[s.local]:
		case s.remote == nats:
			found = append(found, traffic{port: 4222, peer: "keyturn-actuator"})
		case s.remote == apiServer:
			found = append(found, traffic{port: 6443})
		default:
			found = append(found, traffic{port: s.remote})
		}
	}
	return found
}

// socket is one of TCP, with its ports.
type socket struct {
	local, remote int
	listening     bool
}

// sockets are those that a process listens on, or is connected by.
func (i *installation) sockets(pid int) []socket {
	i.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	testkit.Must(i, err)
	mine := map[string]bool{}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err == nil { // One that is gone was closed meanwhile.
			mine[target] = true
		}
	}
	var sockets []socket
	for _, table := range []string{"tcp", "tcp6"} {
		content := testkit.ReadFile(i.T, fmt.Sprintf("/proc/%d/net/%s", pid, table))
		const established, listen = "01", "0A"
		for line := range strings.Lines(content) {
			// sl, local address, remote address, state, queues, timer, retransmits, uid, timeout, inode
			fields := strings.Fields(line)
			if len(fields) < 10 || !mine["socket:["+fields[9]+"]"] || fields[3] != established && fields[3] != listen {
				continue
			}
			sockets = append(sockets, socket{number(after(fields[1]), 16), number(after(fields[2]), 16), fields[3] == listen})
		}
	}
	return sockets
}

// after is the port of an address.
func after(address string) string {
	_, port, _ := strings.Cut(address, ":")
	return port
}

// number returns a port, or -1.
func number(port string, base int) int {
	n, err := strconv.ParseUint(port, base, 16)
	if err != nil {
		return -1
	}
	return int(n)
}
