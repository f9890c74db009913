package testbed

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAPodBecomesReady(t *testing.T) {
	namespace := bed.Namespace(t)
	always := corev1.ContainerRestartPolicyAlways
	createPod(t, namespace, "web", corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init", Image: "none"}, {Name: "sidecar", Image: "none", RestartPolicy: &always}},
		Containers:     []corev1.Container{{Name: "main", Image: "none"}},
		ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}},
	})
	pod := awaitPhase(t, namespace, "web", corev1.PodRunning)
	holds := map[corev1.PodConditionType]bool{}
	for _, condition := range pod.Status.Conditions {
		holds[condition.Type] = condition.Status == corev1.ConditionTrue
	}
	for _, want := range []corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady, "example.com/gate",
	} {
		if !holds[want] {
			t.Errorf("the condition %s is not true: %+v", want, pod.Status.Conditions)
		}
	}
	main, inits := pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses
	if len(main) != 1 || !main[0].Ready || main[0].State.Running == nil {
		t.Errorf("containers: %+v, want one that runs and is ready", main)
	}
	if len(inits) != 2 || inits[0].State.Terminated == nil || inits[1].State.Running == nil {
		t.Errorf("init containers: %+v, want one that has ended and one that runs", inits)
	}
	if pod.Status.PodIP == "" || pod.Status.StartTime == nil {
		t.Errorf("no address, or no time of the start: %+v", pod.Status)
	}
}

func TestTheNodeLeavesAPodWhereItIs(t *testing.T) {
	namespace := bed.Namespace(t)
	containers := []corev1.Container{{Name: "main", Image: "none"}}
	createPod(t, namespace, "nowhere", corev1.PodSpec{Containers: containers, NodeSelector: map[string]string{"example.com/nowhere": "true"}})
	createPod(t, namespace, "broken", corev1.PodSpec{Containers: containers})
	broken := awaitPhase(t, namespace, "broken", corev1.PodRunning)
	for i, condition := range broken.Status.Conditions {
		if condition.Type == corev1.PodReady {
			broken.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	broken.Status.ContainerStatuses[0].Ready = false
	broken.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	broken, err := bed.client.CoreV1().Pods(namespace).UpdateStatus(t.Context(), broken, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// It has had an event for each of the others when a pod that is created after them is ready.
	createPod(t, namespace, "later", corev1.PodSpec{Containers: containers})
	awaitPhase(t, namespace, "later", corev1.PodRunning)
	if pod := getPod(t, namespace, "nowhere"); pod.Spec.NodeName != "" || pod.Status.Phase != corev1.PodPending {
		t.Errorf("a pod that may not be on the node is %s, on node %q", pod.Status.Phase, pod.Spec.NodeName)
	}
	if diff := cmp.Diff(broken.Status, getPod(t, namespace, "broken").Status); diff != "" {
		t.Errorf("the status that a test has set (-set +got):\n%s", diff)
	}
}

func TestThePodOfAJobSucceeds(t *testing.T) {
	namespace := bed.Namespace(t)
	jobs := bed.client.BatchV1().Jobs(namespace)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "once"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "none"}},
		}}},
	}
	if _, err := jobs.Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the Job is complete", func(ctx context.Context) bool {
		got, err := jobs.Get(ctx, "once", metav1.GetOptions{})
		return err == nil && got.Status.CompletionTime != nil && got.Status.Succeeded == 1
	})
}

func TestADeletedPodIsGone(t *testing.T) {
	namespace := bed.Namespace(t)
	createPod(t, namespace, "web", corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}})
	awaitPhase(t, namespace, "web", corev1.PodRunning)
	pods := bed.client.CoreV1().Pods(namespace)
	if err := pods.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the pod is gone", func(ctx context.Context) bool {
		_, err := pods.Get(ctx, "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func createPod(t *testing.T, namespace, name string, spec corev1.PodSpec) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := bed.client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func getPod(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	pod, err := bed.client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func awaitPhase(t *testing.T, namespace, name string, phase corev1.PodPhase) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	testkit.Await(t, "pod "+name+" is "+string(phase), func(context.Context) bool {
		pod = getPod(t, namespace, name)
		return pod.Status.Phase == phase
	})
	return pod
}
