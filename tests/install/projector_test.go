package install

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/traces"
)

// ofTheExample has the projector compare what only an event tells it of, and gives the file of the example for the namespace of the test.
const ofTheExample = `  - target: {kind: Deployment, name: keyturn-projector}
    patch: |
      - {op: add, path: /spec/template/spec/containers/0/args/-, value: --resync=1h}
  - target: {kind: ConfigMap, name: keyturn-projections}
    patch: |
      - op: replace
        path: /data/projections.yaml
        value: |
          FILE
`

func TestAChangeOfASecretReachesAFieldInOneTrace(t *testing.T) {
	t.Parallel()
	testkit.Must(t, plane.Apply(t.Context(), "../testdata/widgets.yaml"))
	received := traces.Receive(t)
	file := testkit.ReadFile(t, "../../deploy/projections/example/projections.yaml")
	text := strings.ReplaceAll(strings.ReplaceAll(file, "namespace: shop", "namespace: SERVED"), "\n", "\n          ")
	c := newComponents(t, strings.Replace(ofTheExample, "FILE", text, 1), []string{"keys", "actuator", "watcher", "projector"},
		"projector", "../projections/example", "otlp")
	widget := `
apiVersion: example.org/v1
kind: Widget
metadata: {name: main, annotations: {keyturn.dev/project: "spec.auth.password=secret/db/password"}, namespace: ` + c.namespace + "}\nspec: {size: 3}\n"
	apply(t, widget)
	sources := workloads{t, c.client, c.namespace}
	resource := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}
	widgets := dynamic.NewForConfigOrDie(plane.Config()).Resource(resource).Namespace(c.namespace)
	awaitPassword := func(want string) {
		t.Helper()
		testkit.Await(t, "the field is "+want, func(ctx context.Context) bool {
			object, err := widgets.Get(ctx, "main", metav1.GetOptions{})
			if err != nil {
				return false
			}
			text, _, _ := unstructured.NestedString(object.Object, "spec", "auth", "password")
			return text == want
		})
	}
	sources.secret("db", "one")
	c.await(c.run("keys"))
	c.sends(received, "watcher", "actuator", "projector")
	c.runReady("actuator")
	c.runReady("watcher")
	c.runReady("projector")
	awaitPassword("one")
	// Before the watcher has seen it, a change is none.
	testkit.Await(t, "the watcher and the projector know the Secret", func(context.Context) bool {
		return strings.Contains(c.ask("history", "--source", "secret/db", "--namespace", c.namespace), "observed")
	})
	sources.secret("db", "two")
	awaitPassword("two")

	var operations []string
	testkit.Await(t, "there is one trace of the watcher and the projector", func(ctx context.Context) bool {
		tags := map[string]string{"cloudevents.event_subject": "/api/v1/namespaces/" + c.namespace + "/secrets/db"}
		found, _ := received.Traces(ctx, "keyturn-watcher", tags)
		operations = nil
		by := map[string]string{}
		for _, trace := range found {
			for _, span := range trace.Spans {
				operations = append(operations, span.Service+": "+span.Operation)
				by[span.Operation] = span.Service
			}
		}
		return len(found) == 1 && by["detect secret"] == "keyturn-watcher" && by["project widget"] == "keyturn-projector"
	}, func() string { return strings.Join(operations, "\n") })
	if told := c.ask("history", "--namespace", c.namespace); !strings.Contains(told, "widget/main") ||
		!strings.Contains(told, "applied; Applied spec.auth.password from secret/db/password.") {
		t.Errorf("the history does not tell of it:\n%s", told)
	}
}
