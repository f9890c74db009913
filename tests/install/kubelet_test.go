package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
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
	// nats is where the NATS of the installation is.
	nats string
	// further has pairs: a text in the pods, and its replacement on this machine.
	further []string
	started int
	// logs has the newest process of each program, whose output is the log of its pods.
	logs sync.Map
	// beside has the newest processes of the sidecars of each program, which end after it.
	beside map[string][]*programs.Program
}

// entrypoint is what the image runs in a container without a command.
var entrypoint = []string{"keyturn", "reloader"}

func newKubelet(t *testing.T, namespace string) *kubelet {
	t.Helper()
	return &kubelet{
		T: t, client: kubernetes.NewForConfigOrDie(plane.Config()), namespace: namespace, dir: t.TempDir(),
		nats: process.FreeAddress(t), beside: map[string][]*programs.Program{},
	}
}

// inOne is the name of the program that is all of them in one process.
const inOne = "keyturn"

// pods returns the pods of a program.
func (k *kubelet) pods(program string) []corev1.Pod {
	k.Helper()
	name := "keyturn-" + program
	if program == inOne {
		name = inOne
	}
	pods, err := k.client.CoreV1().Pods(k.namespace).List(k.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + name})
	testkit.Must(k, err)
	return pods.Items
}

// awaitPods waits until each program has one pod, and none that ends.
func (k *kubelet) awaitPods(programs ...string) {
	k.Helper()
	for _, program := range programs {
		testkit.Await(k.T, "there is one pod of the "+program, func(context.Context) bool {
			pods := k.pods(program)
			return len(pods) == 1 && pods[0].DeletionTimestamp == nil
		})
	}
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

// run starts the processes of a program's pod: its sidecars first. They are stopped when the test ends, and the sidecars when the program ends. It
// returns the program.
func (k *kubelet) run(program string) *programs.Program {
	k.Helper()
	k.awaitSidecars(program) // Those of a pod end before the next one has its volume.
	pod := k.pod(program)
	var beside []*programs.Program
	for _, container := range pod.Spec.InitContainers {
		if container.RestartPolicy == nil || *container.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			k.Fatalf("%s: container %s is no sidecar", pod.Name, container.Name)
		}
		sidecar := k.runContainer(pod, container, container.Name)
		k.logs.Store(container.Name, sidecar)
		beside = append(beside, sidecar)
	}
	p := k.runPod(pod, program)
	k.logs.Store(program, p)
	k.beside[program] = beside
	go func() {
		<-p.Done()
		for _, sidecar := range slices.Backward(beside) {
			_ = sidecar.Stop(testkit.Patience)
		}
	}()
	return p
}

// awaitSidecars waits for the end of the sidecars of a program that has ended.
func (k *kubelet) awaitSidecars(program string) {
	k.Helper()
	for _, before := range k.beside[program] {
		testkit.Receive(k.T, "the end of the "+before.Name()+" before", before.Done(), before.Output)
	}
}

// runPod starts the process of a pod's first container.
func (k *kubelet) runPod(pod *corev1.Pod, name string) *programs.Program {
	k.Helper()
	return k.runContainer(pod, pod.Spec.Containers[0], name)
}

func (k *kubelet) runContainer(pod *corev1.Pod, container corev1.Container, name string) *programs.Program {
	k.Helper()
	if len(container.Command) == 0 {
		container.Command = entrypoint
	}
	rewrite := k.rewriter(pod, container)
	args := append(slices.Clone(container.Command[1:]), container.Args...)
	var env []string
	variables := k.environment(pod, container)
	for name, value := range variables {
		env = append(env, rewrite(name+"="+value))
	}
	if mountsToken(pod, container) {
		env = append(env, "KUBECONFIG="+k.kubeconfig(pod))
	}
	for i, arg := range args {
		args[i] = rewrite(expand(arg, variables))
	}
	k.started++
	process, err := process.Start(process.Options{
		Path: k.binary(container.Command[0]), Args: args, Name: name,
		// By default the race detector waits a second when a program ends, for races that show themselves late.
		Env:     append(env, "GORACE=atexit_sleep_ms=0"),
		LogFile: filepath.Join(k.dir, fmt.Sprintf("%s-%d.log", name, k.started)),
	})
	testkit.Must(k, err)
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
	testkit.Must(k, err)
	link := filepath.Join(k.dir, pod.Spec.ServiceAccountName+".kubeconfig")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.Fatal(err)
	}
	testkit.Must(k, os.Symlink(path, link))
	return link
}

// runReady is run for a program that has a readiness probe.
func (k *kubelet) runReady(program string) *programs.Program {
	k.Helper()
	p := k.run(program)
	p.AwaitReady(k.T, testkit.Patience)
	for _, sidecar := range k.beside[program] {
		sidecar.AwaitReady(k.T, testkit.Patience)
	}
	return p
}

func (k *kubelet) binary(command string) string {
	k.Helper()
	path, ok := map[string]string{"watcher": binaries.Watcher, "actuator": binaries.Actuator, "keyturn": binaries.Keyturn}[command]
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

// ask runs a command for people with the settings of the actuator's pod, and returns its output, whose tables are as wide as they must be. It reads the
// stream as the reader, and workloads with the rights of an administrator: the account of the actuator would ask for what it does not need.
func (k *kubelet) ask(words ...string) string {
	k.Helper()
	pod := k.pod("actuator")
	env := k.environment(pod, pod.Spec.Containers[0])
	return k.exec("actuator", slices.Concat([]string{"keyturn"}, words, []string{
		"--output=wide", "--cluster=" + env["KEYTURN_CLUSTER"], "--nats-url=" + env["KEYTURN_NATS_URL"], "--nats-ca=" + env["KEYTURN_NATS_CA"],
		"--nats-creds=" + env["KEYTURN_NATS_CREDS"], "--kubeconfig=" + plane.Kubeconfig(),
	})...)
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
