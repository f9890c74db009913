package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	nodeName = "node-0"
	nodeIP   = "127.0.0.1"
	// podWorkers is the number of pods that are worked on at a time. With few, the node and not the controllers would determine how long a large
	// rollout takes.
	podWorkers = 16
	// heartbeat is the time between two heartbeats of the node.
	heartbeat = 20 * time.Second
)

// runNode is the only node of the cluster: it binds pods to itself, like a scheduler, and makes them ready at once, like a kubelet, but runs no
// container. Real ones would need time, memory and images, and no test looks at them. It returns only with an error.
func runNode(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("simulated-node", pflag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "the file with the address of the API server and a token")
	address := flags.String("address", "127.0.0.1:10250", "the address of /healthz")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := clientConfig(*kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // no limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make the client: %w", err)
	}
	n := &node{client: client}
	if err := n.join(ctx); err != nil {
		return err
	}
	go wait.UntilWithContext(ctx, n.beat, heartbeat)
	if err := n.startPods(ctx); err != nil {
		return err
	}
	return healthServer(*address).ListenAndServe()
}

// node is the cluster's only node.
type node struct {
	client kubernetes.Interface
	object *corev1.Node
}

// join creates the node. A folder that was used before has it, and then it is ready already.
func (n *node) join(ctx context.Context) error {
	nodes := n.client.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, newNode(metav1.Now()), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the node: %w", err)
	}
	// The API server taints each new node until a controller has seen that it is ready. There is none here, and no DaemonSet has pods on a
	// tainted node.
	untaint := []byte(`{"spec":{"taints":null}}`)
	object, err := nodes.Patch(ctx, nodeName, types.MergePatchType, untaint, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("remove the taint of the node: %w", err)
	}
	n.object = object
	return nil
}

// newNode returns a node that is ready, with room for 100,000 pods.
func newNode(now metav1.Time) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("10k"),
		corev1.ResourceMemory: resource.MustParse("100Ti"),
		corev1.ResourcePods:   resource.MustParse("100k"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   nodeName,
			Labels: map[string]string{corev1.LabelHostname: nodeName, corev1.LabelOSStable: "linux"},
		},
		Status: corev1.NodeStatus{
			Capacity:    room,
			Allocatable: room,
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "NodeReady", LastHeartbeatTime: now, LastTransitionTime: now,
			}},
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: nodeIP}, {Type: corev1.NodeHostName, Address: nodeName},
			},
			NodeInfo: corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64"},
		},
	}
}

// beat says that the node is alive, for the node controller of an upstream controller manager. It changes nothing else, because tests give the
// node an address of their own.
func (n *node) beat(ctx context.Context) {
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}]}}`,
		time.Now().UTC().Format(time.RFC3339))
	_, err := n.client.CoreV1().Nodes().Patch(ctx, nodeName, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		slog.ErrorContext(ctx, "no heartbeat", "err", err)
	}
}

// startPods begins to work on the pods, and waits until it knows those that are there.
func (n *node) startPods(ctx context.Context) error {
	shared := informers.NewSharedInformerFactoryWithOptions(n.client, 0, informers.WithTransform(withoutManagers))
	informer := shared.Core().V1().Pods()
	p := &pods{
		client: n.client.CoreV1(), lister: informer.Lister(), node: n.object,
		// While the API server is down all pods fail, and none is to wait much longer than it.
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](20*time.Millisecond, 2*time.Second)),
	}
	p.addresses.Store(rand.Uint32()) // so that after a restart it is unlikely that an address is given twice
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    p.enqueue,
		UpdateFunc: func(_, pod any) { p.enqueue(pod) },
	})
	if err != nil {
		return fmt.Errorf("watch the pods: %w", err)
	}
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	for range podWorkers {
		go p.work(ctx)
	}
	return nil
}
