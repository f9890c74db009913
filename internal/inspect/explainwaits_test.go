package inspect

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func TestExplainSaysThatARolloutWaitsForSomebody(t *testing.T) {
	bus := natstest.Buses(t, "demo")[0]
	publish(t, bus, changeOfDB())
	of := deploymentOf("web", map[string]string{workload.AnnotationRollOn: "auto", "keyturn.dev/rolled": `{"secret/db":"` + fp("b") + `@100/uid"}`})
	daemons := &appsv1.DaemonSet{
		ObjectMeta: of.ObjectMeta, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2},
		Spec: appsv1.DaemonSetSpec{
			Template: of.Spec.Template, UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
		},
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: of.ObjectMeta, Spec: appsv1.StatefulSetSpec{
			Template: of.Spec.Template, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
		},
	}
	paused := rolloutOf("web", map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}}})
	paused.Object["status"] = map[string]any{"observedGeneration": "1", "phase": "Paused", "message": "CanaryPauseStep"}
	options := ExplainOptions{Origins: events.Origins{Cluster: "demo"}, Now: historyNow, Clients: workload.Clients{
		Typed: fake.NewClientset(daemons, set), Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), paused),
	}}
	const onDelete = "Its rollout waits: the update strategy is OnDelete: a pod is replaced when it is deleted. Pods that are not replaced yet keep what they have read.\n"
	for _, tt := range []struct {
		workload string
		want     []string
	}{
		{"daemonset/web", []string{onDelete, "Nothing is pending.\n"}},
		{"statefulset/web", []string{onDelete, "Nothing is pending.\n"}},
		{"rollout/web", []string{"Its rollout waits: the Rollout is paused: CanaryPauseStep. Pods that are not replaced yet keep what they have read.\n"}},
	} {
		t.Run(tt.workload, func(t *testing.T) {
			explainSays(t, options, bus, tt.workload, tt.want...)
		})
	}
}

func TestExplainTellsAWindowThatIsOpenFromOneThatIsClosed(t *testing.T) {
	bus := natstest.Buses(t, "demo")[0]
	opened := historyNow.Truncate(time.Minute).Add(time.Second)
	publish(t, bus, changeOfDB())
	const soon = "Its window is open: 9 15 * * * for 3h. Workloads are rolled one after the other then, and this one from 2026-03-14T15:"
	for _, tt := range []struct {
		name, want  string
		annotations map[string]string
	}{
		{"its own moment is to come", soon, nil},
		{
			"it was rolled recently, which counts first", "It was rolled recently (rolled-recently)",
			map[string]string{workload.AnnotationMinInterval: "10m", "keyturn.dev/rolled-at": opened.Format(time.RFC3339)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			annotations := map[string]string{workload.AnnotationRollOn: "auto", workload.AnnotationWindow: "9 15 * * * for 3h"}
			maps.Copy(annotations, tt.annotations)
			options := ExplainOptions{Origins: events.Origins{Cluster: "demo"}, Now: opened, Clients: workload.Clients{
				Typed: fake.NewClientset(deploymentOf("web", annotations)), Dynamic: customClient(),
			}}
			explainSays(t, options, bus, "deployment/web", tt.want)
		})
	}
}

// explainSays returns the explanation of a workload in the namespace shop, and checks that it contains each text.
func explainSays(t *testing.T, options ExplainOptions, bus *events.Bus, name string, texts ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := explainInShop(t, options, bus, name, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range texts {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
	return out.String()
}
