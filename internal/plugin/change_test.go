package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/tests/testkit"
)

// annotatingShop is a command for the namespace shop, which has a Deployment, without an installation. Its explanations are given in order.
func annotatingShop(t *testing.T, out, errOut *bytes.Buffer, explanations ...string) *annotator {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Service"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "Prometheus"}, meta.RESTScopeNamespace)
	client := fake.NewSimpleDynamicClient(runtime.NewScheme(), existing("apps/v1", "Deployment", "shop", "web"), existing("v1", "Secret", "shop", "db"))
	p := New("dev")
	p.access.dynamic = client
	cmd := p.Command()
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	a := &annotator{
		mapper: mapper, namespace: "shop", plugin: p, cmd: cmd, prepared: true, unprepared: errors.New("no installation"),
	}
	a.explains = func(context.Context, *object) (*inspect.Report, error) {
		if len(explanations) == 0 {
			return nil, errors.New("no NATS")
		}
		text := explanations[0]
		explanations = explanations[1:]
		report := &inspect.Report{}
		return report, json.Unmarshal([]byte(text), report)
	}
	return a
}

func TestAChangeSaysWhatWasPendingAndWhatKeepsTheWorkloadFromRolling(t *testing.T) {
	text := "load test"
	const pending, held = `{"pending": ["secret/db", "secret/tls"], "states": [{"reason": "on-hold", "text": "It is on hold: x."}]}`,
		`{"pending": ["secret/db"], "states": [{"reason": "on-hold", "text": "It is on hold: y."}, {"reason": "on-hold", "text": "It has been held."}]}`
	for _, tt := range []struct {
		name, object string
		explanations []string
		change       change
		dryRun       bool
		want, err    string
	}{
		{
			name: "one that rolls", object: "deployment/web", explanations: []string{pending, `{"pending": []}`}, change: change{done: "released"},
			want: "deployment/web: released\n  pending: secret/db, secret/tls\n",
		},
		{
			name: "one that is held now, as was asked", object: "deployment/web", explanations: []string{held},
			change: change{done: "held", value: &text, holds: true}, want: "deployment/web: held\n  pending: secret/db\n",
		},
		{
			name: "one of which others say what breaks a line and controls the terminal", object: "deployment/web", explanations: []string{
				`{"pending": ["secret/db"], "states": [{"text": "It is held: \u001b]52;c;cm0=\u0007\rnow"}]}`,
			}, change: change{done: "held", value: &text, holds: true},
			want: "deployment/web: held\n  pending: secret/db\n  It is held:  ]52;c;cm0=  now\n",
		},
		{
			name: "a dry run", object: "deployment/web", explanations: []string{held}, change: change{done: "released"}, dryRun: true,
			want: "deployment/web: released (dry run: nothing is changed)\n  pending: secret/db\n",
		},
		{
			name: "without an explanation", object: "deployment/web", change: change{done: "released"},
			want: "deployment/web: released\n", err: "What is pending is not known: no NATS\n",
		},
		{name: "a source", object: "secret/db", change: change{done: "held", value: &text}, want: "secret/db: held\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			a := annotatingShop(t, &out, &errOut, tt.explanations...)
			a.dryRun, tt.change.annotation = tt.dryRun, events.AnnotationHold
			err := a.each([]string{tt.object}, func(o *object) error { return a.change(t.Context(), o, tt.change) })
			testkit.Must(t, err)
			testkit.WantEqual(t, "output", tt.want, out.String())
			testkit.WantEqual(t, "errors", tt.err, errOut.String())
		})
	}
}

func TestAHoldIsNotDelayedByNATSThatDoesNotAnswer(t *testing.T) {
	text := "load test"
	var out, errOut bytes.Buffer
	a := annotatingShop(t, &out, &errOut)
	asked := 0
	a.explains = func(ctx context.Context, o *object) (*inspect.Report, error) {
		asked++
		if got, err := o.hold(ctx); err != nil || got != text {
			t.Errorf("when it is explained, it is on hold for %q (%v)", got, err)
		}
		return nil, errors.New("no NATS")
	}
	c := change{annotation: events.AnnotationHold, value: &text, holds: true, done: "held"}
	err := a.each([]string{"deployment/web", "deployment/web"}, func(o *object) error { return a.change(t.Context(), o, c) })
	if err != nil || asked != 1 {
		t.Errorf("NATS is tried %d times, want once for all (%v)", asked, err)
	}
	testkit.WantEqual(t, "output", "deployment/web: held\ndeployment/web: held\n", out.String())
	testkit.WantEqual(t, "errors", "What is pending is not known: no NATS\n", errOut.String())
}
