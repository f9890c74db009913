package inspect

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// forbid makes the API server refuse a verb on all resources.
func forbid(client *fake.Clientset, verb string) {
	client.PrependReactor(verb, "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource()
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: resource.Group, Resource: resource.Resource}, "", nil)
	})
}

func TestWhoMayOnlyListOrOnlyGetGetsTheSameExplanation(t *testing.T) {
	bus := natstest.Buses(t, "demo")[0]
	publish(t, bus, changeOfDB())
	held := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{events.AnnotationHold: "moving"}}}
	explain := func(forbidden ...string) (string, error) {
		client := fake.NewClientset(deploymentOf("web", rollOn("auto")), held)
		for _, verb := range forbidden {
			forbid(client, verb)
		}
		var out bytes.Buffer
		options := ExplainOptions{Origins: events.Origins{Cluster: "demo"}, Kinds: workload.BuiltIn(), Clients: workload.Clients{Typed: client}, Now: historyNow}
		err := explainInShop(t, options, bus, "deployment/web", &out)
		return out.String(), err
	}
	want, err := explain()
	if err != nil || !strings.Contains(want, "namespace shop: moving") {
		t.Fatalf("got %v,\n%s", err, want)
	}
	for _, verb := range []string{"get", "list"} {
		if got, err := explain(verb); err != nil || got != want {
			t.Errorf("without %s: got %v,\n%swant\n%s", verb, err, got, want)
		}
	}
	if _, err := explain("get", "list"); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want that it is forbidden", err)
	}
}

func TestExplainKnowsWhatTheActuatorLeavesAlone(t *testing.T) {
	bus := natstest.Buses(t, "demo")[0]
	publish(t, bus, changeOfDB())
	for _, tt := range []struct {
		name  string
		alter func(*ExplainOptions)
		want  string
		rows  bool
	}{
		{"another namespace", func(o *ExplainOptions) { o.Namespaces = []string{"bank"} }, "leaves workloads of the namespace shop alone", false},
		{"an ignored namespace", func(o *ExplainOptions) { o.IgnoreNamespaces = []string{"shop"} }, "leaves workloads of the namespace shop alone", false},
		{"its own", func(o *ExplainOptions) { o.Namespaces = []string{"bank", "shop"} }, "Pending: secret/db.", true},
		{"a webhook", func(o *ExplainOptions) { o.Posts = true }, "an actuator with --webhook-url posts to that instead", false},
		{"a dry run", func(o *ExplainOptions) { o.DryRun = true }, "it decides what follows, and patches nothing", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options := ExplainOptions{
				Origins: events.Origins{Cluster: "demo"}, Kinds: workload.BuiltIn(), Now: historyNow,
				Clients: workload.Clients{Typed: fake.NewClientset(deploymentOf("web", rollOn("auto")))},
			}
			tt.alter(&options)
			var out bytes.Buffer
			if err := explainInShop(t, options, bus, "deployment/web", &out); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); !strings.Contains(got, tt.want) || strings.Contains(got, "LAST ROLLED FOR") != tt.rows {
				t.Errorf("got\n%swant %q in it, and rows: %t", got, tt.want, tt.rows)
			}
		})
	}
}
