package install

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/traces"
)

// openBao writes the Secret that the components for a store's audit leave to the operator.
func (c *components) openBao(files map[string][]byte) {
	c.Helper()
	secrets := c.client.CoreV1().Secrets(c.namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keyturn-openbao"}, Data: files}
	_, err := secrets.Create(c.Context(), secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(c.Context(), secret, metav1.UpdateOptions{})
	}
	testkit.Must(c, err)
}

// receives maps the Service of the watcher's receiver to this machine, by the pod's port. The store is in its own namespace, the
// only one that the network policy admits.
func (c *components) receives(name, store string) {
	c.Helper()
	service, err := c.client.CoreV1().Services(c.namespace).Get(c.Context(), name, metav1.GetOptions{})
	testkit.Must(c, err)
	pod := c.pod("audit")
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) || len(service.Spec.Ports) != 1 {
		c.Fatalf("Service %s: got selector %v and ports %v, want one port of the receiver", name, service.Spec.Selector, service.Spec.Ports)
	}
	ports := pod.Spec.Containers[0].Ports
	at := slices.IndexFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == service.Spec.Ports[0].TargetPort.String() })
	if at < 0 {
		c.Fatalf("Service %s leads to the port %s, of which the receiver has none", name, service.Spec.Ports[0].TargetPort.String())
	}
	behind := int(ports[at].ContainerPort)
	if service.Spec.PublishNotReadyAddresses {
		c.Errorf("Service %s leads to a watcher that is not ready, such as one on a lost node: the store would have to wait for it", name)
	}
	if !c.opens("audit", store, true, behind) {
		c.Errorf("no policy lets the store in at port %d", behind)
	}
	for _, other := range []string{"default", "kube-system", store + "-of-another", c.namespace} {
		if c.opens("audit", other, true, behind) {
			c.Errorf("a policy lets the namespace %s in at port %d", other, behind)
		}
	}
	if !c.opens("audit", store, false, 8200) {
		c.Error("no policy lets the receiver ask the store")
	}
	c.isOnThePage(service)
	c.audit = process.FreeAddress(c.T)
	c.further = append(c.further, fmt.Sprintf("=:%d", behind), "="+c.audit)
}

// isOnThePage holds what docs/how-to/audit-shippers.md has an operator enter in the store to the Service.
func (c *components) isOnThePage(service *corev1.Service) {
	c.Helper()
	address := regexp.MustCompile(`\b` + service.Name + `\.` + programs.SystemNamespace + `\.svc:(\d+)`)
	found := address.FindAllStringSubmatch(testkit.ReadFile(c.T, "../../docs/how-to/audit-shippers.md"), -1)
	if len(found) == 0 {
		c.Errorf("docs/how-to/audit-shippers.md does not say where the Service %s is", service.Name)
	}
	for _, address := range found {
		if want := strconv.Itoa(int(service.Spec.Ports[0].Port)); address[1] != want {
			c.Errorf("docs/how-to/audit-shippers.md: got %s, want port %s", address[0], want)
		}
	}
}

// sends has the endpoint that programs send traces to be a receiver on this machine.
func (c *components) sends(receiver *traces.Receiver, programs ...string) {
	c.Helper()
	for _, program := range programs {
		pod := c.pod(program)
		endpoint := c.environment(pod, pod.Spec.Containers[0])["OTEL_EXPORTER_OTLP_ENDPOINT"]
		address, err := url.Parse(endpoint)
		testkit.Must(c, err)
		port, err := strconv.Atoi(address.Port())
		testkit.Must(c, err)
		_, namespace, _ := strings.Cut(address.Hostname(), ".")
		if !c.opens(program, namespace, false, port) {
			c.Errorf("no policy lets the %s send traces to %s", program, endpoint)
		}
		c.further = append(c.further, endpoint, receiver.URL())
	}
}

// opens reports whether a policy allows traffic between a program and a namespace at a port.
func (c *components) opens(program, namespace string, ingress bool, port int) bool {
	isPeer := func(peer networkingv1.NetworkPolicyPeer) bool {
		selector, err := metav1.LabelSelectorAsSelector(peer.NamespaceSelector)
		return err == nil && selector.Matches(labels.Set{corev1.LabelMetadataName: namespace})
	}
	through := func(ports []networkingv1.NetworkPolicyPort, peers []networkingv1.NetworkPolicyPeer) bool {
		return hasPort(ports, port) && (len(peers) == 0 || slices.ContainsFunc(peers, isPeer))
	}
	return slices.ContainsFunc(c.policies, func(policy networkingv1.NetworkPolicy) bool {
		switch {
		case !selects(&policy.Spec.PodSelector, "keyturn-"+program):
			return false
		case ingress:
			return slices.ContainsFunc(policy.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool { return through(r.Ports, r.From) })
		}
		return slices.ContainsFunc(policy.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool { return through(r.Ports, r.To) })
	})
}
