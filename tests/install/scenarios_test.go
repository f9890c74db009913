package install

import (
	"bytes"
	"context"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

// scenarios are what an installation must do, in this order.
func (i *installation) scenarios() []scenario {
	return []scenario{
		{"a changed Secret rolls what reads it, of each kind", func() { i.rollsReaders("two") }},
		{"a changed ConfigMap rolls what reads it", func() { i.rollsAPI("two") }},
		{"the outcome is in Kubernetes Events and in the history", func() {
			testkit.Await(i.T, "the Event of web is there", func(ctx context.Context) bool {
				list, err := i.kube.CoreV1().Events(i.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=RolloutCompleted,involvedObject.name=web"})
				return err == nil && len(list.Items) > 0
			})
			i.kubelet.awaitAnswer("deployment/web", "history", "--all-namespaces")
			explained := i.kubelet.awaitAnswer("for secret/db: completed (rolled-out)", "explain", "deployment/web", "-n", i.namespace)
			if !strings.Contains(explained, "Nothing is pending: it rolls at the next change.") || strings.Contains(explained, "may not be read") {
				i.Errorf("explain in the pod:\n%s", explained)
			}
			if letters := i.kubelet.ask("dead-letters"); !strings.Contains(letters, "There are no dead letters.") {
				i.Errorf("dead letters:\n%s", letters)
			}
		}},
		{"a change while the watcher is down is found when it is back", func() {
			i.watcher.StopIn(i.T, testkit.Patience)
			before := i.revisions()
			i.secret("db", "three")
			i.watcher = i.kubelet.runReady("watcher")
			i.rolled(before, readers...)
		}},
		{"an actuator that is killed, and NATS with it, goes on where it was", func() {
			i.actuator.Kill()
			i.kubelet.awaitSidecars("actuator") // The watcher must not publish to the NATS server that is about to end.
			before := i.revisions()
			i.secret("db", "four")
			i.actuator = i.kubelet.runReady("actuator")
			i.rolled(before, readers...)
		}},
		{"the keys stay as they are when the Job runs again", func() {
			before := map[string]map[string][]byte{}
			for _, name := range installationKeys {
				before[name] = i.kubelet.secret(name)
			}
			i.kubelet.await(i.kubelet.run("keys"))
			for _, name := range installationKeys {
				if !maps.EqualFunc(before[name], i.kubelet.secret(name), bytes.Equal) {
					i.Errorf("the Secret %s was changed", name)
				}
			}
		}},
	}
}

// awaitAnswer asks until the answer has a text, and returns it. What becomes of a workload is on the stream some time after the workload, or its
// Kubernetes Event, was written.
func (k *kubelet) awaitAnswer(want string, words ...string) (answer string) {
	k.Helper()
	testkit.Await(k.T, strings.Join(words, " ")+" tells of "+want, func(context.Context) bool {
		answer = k.ask(words...)
		return strings.Contains(answer, want)
	}, func() string { return "the last answer:\n" + answer })
	return answer
}

// scenario is one thing that an installation must do.
type scenario struct {
	name string
	play func()
}
