package kubelet

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/testkit"
)

// Kubelet runs a process for each selected pod that has an address. It does nothing by itself, only when Sync or Refresh is
// called.
type Kubelet struct {
	// Client reads the pods and the Secret that they mount.
	Client kubernetes.Interface
	// Namespace and Selector select the pods, and Secret and Key the file that their processes read.
	Namespace, Selector, Secret, Key string
	// Dir has the volumes.
	Dir string

	mu   sync.Mutex
	pods map[types.UID]*pod
}

type pod struct {
	name, address string
	volume        volume
	process       *process
}

// Sync starts processes for running pods that have none, with the current Secret, and stops the processes of pods that are gone.
func (k *Kubelet) Sync(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	list, err := k.Client.CoreV1().Pods(k.Namespace).List(ctx, metav1.ListOptions{LabelSelector: k.Selector})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	runs := make(map[types.UID]bool)
	for i := range list.Items {
		p := &list.Items[i]
		if p.Status.Phase != corev1.PodRunning || p.Status.PodIP == "" || p.DeletionTimestamp != nil {
			continue
		}
		runs[p.UID] = true
		if k.pods[p.UID] == nil {
			if err := k.run(ctx, p); err != nil {
				return err
			}
		}
	}
	for uid, p := range k.pods {
		if !runs[uid] {
			p.process.stop()
			delete(k.pods, uid)
		}
	}
	return nil
}

func (k *Kubelet) run(ctx context.Context, p *corev1.Pod) error {
	data, err := k.data(ctx)
	if err != nil {
		return err
	}
	files := volume(filepath.Join(k.Dir, string(p.UID)))
	if err := os.MkdirAll(string(files), 0o700); err != nil {
		return fmt.Errorf("making a volume: %w", err)
	}
	if err := files.write(data); err != nil {
		return err
	}
	started, err := start(files.file(k.Key))
	if err != nil {
		return err
	}
	if k.pods == nil {
		k.pods = make(map[types.UID]*pod)
	}
	k.pods[p.UID] = &pod{name: p.Name, address: p.Status.PodIP, volume: files, process: started}
	return nil
}

func (k *Kubelet) data(ctx context.Context) (map[string][]byte, error) {
	secret, err := k.Client.CoreV1().Secrets(k.Namespace).Get(ctx, k.Secret, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the Secret: %w", err)
	}
	return secret.Data, nil
}

// Refresh writes the current Secret into the volumes of all pods. Their processes do not notice.
func (k *Kubelet) Refresh(ctx context.Context) error {
	data, err := k.data(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if err := p.volume.write(data); err != nil {
			return err
		}
	}
	return nil
}

// Dial connects to the process of the pod with the given address. The port is ignored.
func (k *Kubelet) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connecting to a pod: %w", err)
	}
	k.mu.Lock()
	to := ""
	for _, p := range k.pods {
		if p.address == host {
			to = p.process.address
		}
	}
	k.mu.Unlock()
	if to == "" {
		return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("no pod has the address %s", host)}
	}
	return new(net.Dialer).DialContext(ctx, network, to)
}

// Served returns the content that the process of each pod serves, by the name of the pod.
func (k *Kubelet) Served(ctx context.Context) (map[string]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	served := make(map[string]string)
	for _, p := range k.pods {
		_, content, err := testkit.Get(ctx, "http://"+p.process.address+"/")
		if err != nil {
			return nil, fmt.Errorf("asking a pod's process: %w", err)
		}
		served[p.name] = content
	}
	return served, nil
}

// Stop stops all processes.
func (k *Kubelet) Stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid, p := range k.pods {
		p.process.stop()
		delete(k.pods, uid)
	}
}
