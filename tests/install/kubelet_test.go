package install

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

// kubelet runs the containers of pods as processes on this machine, as they are in the cluster: command, arguments, environment
// and volumes, and the rights of the service account. A path of a volume becomes a folder, and an address of a pod or
// Service one on loopback; nothing else is changed.
type kubelet struct {
	*testing.T
	client kubernetes.Interface
	// namespace is the namespace of the pods.
	namespace string
	// dir has a folder for each volume. Those of claims stay as long as the test.
	dir string
	// nats is where the embedded NATS is.
	nats string
	// further has pairs: a text in the pods, and its replacement on this machine.
	further []string
	started int
}

// entrypoint is what the image runs in a container without a command.
const entrypoint = "reloader"

func newKubelet(t *testing.T, namespace string) *kubelet {
	t.Helper()
	port, err := process.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return &kubelet{
		T: t, client: kubernetes.NewForConfigOrDie(plane.Config()), namespace: namespace, dir: t.TempDir(),
		nats: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
	}
}

// pods returns the pods of a program.
func (k *kubelet) pods(program string) []corev1.Pod {
	k.Helper()
	pods, err := k.client.CoreV1().Pods(k.namespace).List(k.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=keyturn-" + program,
	})
	if err != nil {
		k.Fatal(err)
	}
	return pods.Items
}

// pod returns the newest pod of a program.
func (k *kubelet) pod(program string) *corev1.Pod {
	k.Helper()
	pods := k.pods(program)
	if len(pods) == 0 {
		k.Fatalf("there is no pod of the %s", program)
	}
	newest := slices.MaxFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return &newest
}

// run starts the process of a program's pod. It is stopped when the test ends.
func (k *kubelet) run(program string) *programs.Program {
	k.Helper()
	return k.runPod(k.pod(program), program)
}

func (k *kubelet) runPod(pod *corev1.Pod, name string) *programs.Program {
	k.Helper()
	container := pod.Spec.Containers[0]
	if len(container.Command) == 0 {
		container.Command = []string{entrypoint}
	}
	rewrite := k.rewriter(pod, container)
	args := append(slices.Clone(container.Command[1:]), container.Args...)
	var env []string
	for name, value := range k.environment(pod, container) {
		env = append(env, rewrite(name+"="+value))
	}
	if slices.ContainsFunc(pod.Spec.Volumes, hasToken) {
		env = append(env, "KUBECONFIG="+k.kubeconfig(pod))
	}
	for i, arg := range args {
		args[i] = rewrite(arg)
	}
	k.started++
	process, err := process.Start(process.Options{
		Path: k.binary(container.Command[0]), Args: args, Name: name,
		// By default the race detector waits a second when a program ends, for races that show themselves late.
		Env:     append(env, "GORACE=atexit_sleep_ms=0"),
		LogFile: filepath.Join(k.dir, fmt.Sprintf("%s-%d.log", name, k.started)),
	})
	if err != nil {
		k.Fatal(err)
	}
	p := &programs.Program{Process: process}
	k.Cleanup(func() {
		// The error is the exit status of a program that the test has killed.
		_ = p.Stop(testkit.Patience)
		if k.Failed() {
			k.Logf("log of %s %v:\n%s", name, args, p.Output())
		}
	})
	return p
}

// kubeconfig has the token of a pod's service account. The variable is a list with colons, which the test bed's path has too.
func (k *kubelet) kubeconfig(pod *corev1.Pod) string {
	k.Helper()
	path, err := plane.ServiceAccountKubeconfig(k.Context(), pod.Namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		k.Fatal(err)
	}
	link := filepath.Join(k.dir, pod.Spec.ServiceAccountName+".kubeconfig")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		k.Fatal(err)
	}
	return link
}

// runReady is run for a program that has a readiness probe.
func (k *kubelet) runReady(program string) *programs.Program {
	k.Helper()
	p := k.run(program)
	p.AwaitReady(k.T, testkit.Patience)
	return p
}

func (k *kubelet) binary(command string) string {
	k.Helper()
	path, ok := map[string]string{"watcher": binaries.Watcher, "actuator": binaries.Actuator}[command]
	if command == entrypoint || command == "projector" {
		var err error
		if path, err = build.Program(k.Context(), "./cmd/"+command, build.Race()); err != nil {
			k.Fatal(err)
		}
		ok = true
	}
	if !ok {
		k.Fatalf("the image has no %q", command)
	}
	return path
}

// exec runs a command as in a pod of the program, like kubectl exec, and returns its output.
func (k *kubelet) exec(program string, command ...string) string {
	k.Helper()
	pod := k.pod(program)
	pod.Spec.Containers[0].Command, pod.Spec.Containers[0].Args = command, nil
	p := k.runPod(pod, program)
	k.await(p)
	return p.Output()
}

// end waits for the end of a program. The error is that of its Wait.
func (k *kubelet) end(p *programs.Program) error {
	k.Helper()
	testkit.Receive(k.T, "the end of the "+p.Name(), p.Done(), p.Output)
	return p.Wait()
}

// await waits for the end of what should end well.
func (k *kubelet) await(p *programs.Program) {
	k.Helper()
	if err := k.end(p); err != nil {
		k.Fatalf("the %s: %v\n%s", p.Name(), err, p.Output())
	}
}
