package tests

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestJaegerShowsAChangeFromTheSecretToTheReadyPods(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	r := newJaegerRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 2, nil))
	r.start()
	r.secret("db", map[string]string{"password": "two"})
	completed := r.outcomeOf("web", events.VerbCompleted)

	trace := r.trace("db", "detect secret", "process "+secretDestination, "rollout deployment")
	r.looksLike(trace, plainOutline)
	services, err := r.jaeger.Services(t.Context())
	if err != nil || !slices.Equal(services, []string{"keyturn-actuator", "keyturn-watcher"}) {
		t.Errorf("services: got %q, %v, want both programs", services, err)
	}
	change := r.lastChange(events.Source{Kind: events.KindSecret, Name: "db"})
	message := map[string]string{
		"messaging.system": "nats", "messaging.destination.template": secretDestination,
		"messaging.destination.name": "keyturn.v1.demo.secret." + r.namespace + ".db", "messaging.message.id": change.ID(),
		"cloudevents.event_id": change.ID(), "cloudevents.event_source": "k8s://demo/watcher",
		"cloudevents.event_type": "dev.keyturn.secret.changed.v1", "cloudevents.event_spec_version": "1.0",
		"cloudevents.event_subject": "/api/v1/namespaces/" + r.namespace + "/secrets/db",
		"k8s.namespace.name":        r.namespace, "keyturn.object.kind": "secret", "keyturn.object.name": "db", "error": "",
	}
	publish := maps.Clone(message)
	publish["messaging.operation.name"], publish["messaging.operation.type"] = "publish", "send"
	r.tagged(r.only(trace, "publish "+secretDestination), publish)
	process := maps.Clone(message)
	process["messaging.operation.name"], process["messaging.operation.type"] = "process", "process"
	r.tagged(r.only(trace, "process "+secretDestination), process)
	target := map[string]string{"k8s.namespace.name": r.namespace, "k8s.deployment.name": "web", "error": ""}
	r.tagged(r.only(trace, "plan"), target)
	patch := maps.Clone(target)
	patch["http.request.method"], patch["http.request.resend_count"] = "PATCH", ""
	r.tagged(r.only(trace, "patch deployment"), patch)
	rollout := maps.Clone(target)
	rollout["keyturn.outcome"], rollout["keyturn.reason"], rollout["keyturn.sources"] = "completed", "rolled-out", `["secret/db"]`
	r.tagged(r.only(trace, "rollout deployment"), rollout)
	if noted := r.only(trace, "plan").Events; !slices.Equal(noted, []string{"content-changed"}) {
		t.Errorf("what the plan notes: got %q, want its decision", noted)
	}
	for _, span := range trace.Spans {
		if got := span.Resource; got["k8s.cluster.name"] != "demo" || got["service.namespace"] != "keyturn" || got["service.instance.id"] == "" {
			t.Errorf("%s comes from %v, want the cluster, the namespace and the instance of the service", span.Operation, got)
		}
	}
	r.leadsEverywhere(trace, completed)
}

// leadsEverywhere checks that the workload, its Events, its outcomes, the message, the logs and explain all refer to the trace.
func (r *tracedRig) leadsEverywhere(trace testbed.Trace, completed events.Outcome) {
	r.Helper()
	header := r.lastMessage("db").Header
	for what, traceparent := range map[string]string{
		"the annotation of the pod template": r.deployment("web").Spec.Template.Annotations["keyturn.dev/traceparent"],
		"the completed outcome":              completed.Trace.Parent,
		"the header of the message":          strings.Join(header["traceparent"], ","),
		"the event in the message":           strings.Join(header["ce-traceparent"], ","),
	} {
		if !strings.HasPrefix(traceparent, "00-"+trace.ID+"-") {
			r.Errorf("%s: got traceparent %q, want trace %s", what, traceparent, trace.ID)
		}
	}
	for _, reason := range []string{"Rolled", "RolloutCompleted"} {
		r.eventually("a Kubernetes Event "+reason+" has the trace", func(context.Context) bool {
			list := r.kubeEvents("web", reason)
			return len(list) == 1 && strings.HasPrefix(list[0].Annotations["keyturn.dev/traceparent"], "00-"+trace.ID+"-")
		})
	}
	r.pointsTo(trace, r.watcher, "change published")
	r.pointsTo(trace, r.actuator, "event received")
	r.pointsTo(trace, r.actuator, "workload rolled")
	r.pointsTo(trace, r.actuator, "rollout ended")
	link := r.jaeger.URL() + "/trace/" + trace.ID
	explained := r.ask("explain", "deployment/web", "-n", r.namespace, "--trace-url", r.jaeger.URL()+"/trace/{traceID}")
	if !strings.Contains(explained, "\nTrace: "+link+"\n") {
		r.Errorf("explain has no link %s:\n%s", link, explained)
	}
	if told := r.ask("history", "-n", r.namespace, "--trace-url", r.jaeger.URL()+"/trace/{traceID}"); strings.Count(told, "trace "+link+"\n") < 3 {
		r.Errorf("history has not the link %s at the change, the start and the end:\n%s", link, told)
	}
	r.command("explain", "deployment/web", "--trace-url", "http://jaeger").run(r.T).refused(r.T, "--trace-url: ")
}

func TestATraceShowsAllChangesThatOneRolloutIsFor(t *testing.T) {
	t.Parallel()
	r := newTracedRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("first", map[string]string{"password": "one"})
	r.secret("second", map[string]string{"password": "one"})
	web := r.reading("web", "first", 1, map[string]string{"keyturn.dev/hold": "until both have changed"})
	programs.ReadSecret(&web.Spec.Template, "second")
	r.deploy(web)
	r.start()
	r.secret("first", map[string]string{"password": "two"})
	r.isHeld("web", "on-hold", "until both have changed")
	r.secret("second", map[string]string{"password": "two"})
	r.eventually("the actuator has taken the second change", func(context.Context) bool {
		return len(lines(r.actuator.Output(), `"msg":"event received"`, `"source":"secret/second"`, `"verb":"changed"`)) > 0
	})
	r.annotateDeployment("web", "keyturn.dev/hold", "")
	r.outcomeOf("web", events.VerbCompleted)

	newest := r.trace("second", "detect secret", "process "+secretDestination, "rollout deployment")
	r.looksLike(newest, plainOutline)
	older := r.trace("first", "detect secret", "process "+secretDestination)
	before, _, _ := strings.Cut(plainOutline, "      keyturn-actuator: plan")
	r.looksLike(older, before+"      keyturn-actuator: plan (internal)\n") // by which it was held

	plan, received := r.only(newest, "plan"), r.only(older, "process "+secretDestination)
	if noted := r.only(older, "plan").Events; !slices.Equal(noted, []string{"content-changed", "on-hold"}) {
		t.Errorf("what the plan of the older change notes: got %q, want its decision and why it is held", noted)
	}
	if want := (testbed.SpanLink{Trace: older.ID, Span: received.ID}); !slices.Contains(plan.Links, want) {
		t.Errorf("links of the plan: got %v, want one to the older change, %v", plan.Links, want)
	}
	if parent := r.only(newest, "process "+secretDestination).ID; plan.Parent != parent {
		t.Errorf("parent of the plan: got %s, want the newest change, %s", plan.Parent, parent)
	}
	if want := (testbed.SpanLink{Trace: newest.ID, Span: plan.ID}); !slices.Contains(received.Links, want) {
		t.Errorf("links of the older change: got %v, want one to what came of it, %v", received.Links, want)
	}
}

func TestATraceShowsThatARolloutFailed(t *testing.T) {
	t.Parallel()
	r := newTracedRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.deployOnce(r.reading("web", "db", 1, nil))
	r.start()
	r.secret("db", map[string]string{"password": "two"})
	r.outcomeOf("web", events.VerbFailed)

	trace := r.trace("db", "detect secret", "process "+secretDestination, "rollout deployment")
	r.looksLike(trace, plainOutline+"          keyturn-actuator: patch deployment (client)\n") // That it has failed is written on the workload.
	r.tagged(r.only(trace, "rollout deployment"), map[string]string{
		"error": "true", "otel.status_code": "ERROR", "error.type": "deadline-exceeded",
		"keyturn.outcome": "failed", "keyturn.reason": "deadline-exceeded", "k8s.deployment.name": "web",
	})
	// The event was processed. That the pods do not start is not a failure of that.
	r.tagged(r.only(trace, "process "+secretDestination), map[string]string{"error": ""})
	found, err := r.traces.Traces(t.Context(), "keyturn-actuator", map[string]string{"error": "true", "k8s.namespace.name": r.namespace})
	if err != nil || len(found) != 1 || found[0].ID != trace.ID {
		t.Errorf("a search for errors: got %d traces, %v, want this one", len(found), err)
	}
}

func TestATraceShowsEachTryOfAPatch(t *testing.T) {
	t.Parallel()
	r := newTracedRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	allow := r.denyUpdates("web")
	r.start()
	r.secret("db", map[string]string{"password": "two"})
	const refused = "patch failed; retrying"
	r.eventually("a patch was refused", func(context.Context) bool { return strings.Contains(r.actuator.Output(), refused) })
	allow()
	r.outcomeOf("web", events.VerbCompleted)

	trace := r.trace("db", "detect secret", "process "+secretDestination, "rollout deployment")
	tries := spansOf(trace, "patch deployment")
	plans := spansOf(trace, "plan")
	if len(tries) < 2 || len(plans) != len(tries) {
		t.Fatalf("got %d plans and %d patches, want as many of both, and at least two:\n%s", len(plans), len(tries), outline(trace))
	}
	for i, try := range tries {
		want := map[string]string{
			"http.request.method": "PATCH", "http.request.resend_count": fmt.Sprint(i), "k8s.deployment.name": "web",
			"error": "true", "error.type": "Invalid", "http.response.status_code": "422",
		}
		if i == 0 {
			want["http.request.resend_count"] = ""
		}
		if i == len(tries)-1 {
			want["error"], want["error.type"], want["http.response.status_code"] = "", "", ""
		}
		r.tagged(try, want)
		if try.Parent != plans[i].ID {
			t.Errorf("the parent of try %d is not the plan of that try", i+1)
		}
	}
	if rollout := r.only(trace, "rollout deployment"); rollout.Parent != plans[len(plans)-1].ID {
		t.Error("the parent of the rollout is not the plan of the last try")
	}
	r.tagged(r.only(trace, "process "+secretDestination), map[string]string{"error": ""})
	r.pointsTo(trace, r.actuator, refused)
}

func TestATraceShowsARolloutOnceAlsoWhenTheActuatorIsAnother(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		end  func(*programs.Program) error
	}{
		{"when it is stopped", func(p *programs.Program) error { return p.Stop(patience) }},
		{"when it is killed", func(p *programs.Program) error { p.Kill(); return nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := startOutsideNATS(t)
			r := newTracedRig(t, programs.Options{NATSURL: n.URL(), ActuatorArgs: []string{"--settle", "50ms"}})
			r.secret("db", map[string]string{"password": "one"})
			r.deploy(r.reading("web", "db", 1, nil))
			selectNode := func(selector string) {
				t.Helper()
				body := []byte(`{"spec":{"template":{"spec":{"nodeSelector":` + selector + `}}}}`)
				_, err := r.client.AppsV1().Deployments(r.namespace).Patch(t.Context(), "web", types.MergePatchType, body, metav1.PatchOptions{})
				if err != nil {
					t.Fatal(err)
				}
			}
			// From now on new pods find no node, and the old one stays until they do.
			selectNode(`{"example.com/nowhere":"true"}`)
			r.start()
			r.secret("db", map[string]string{"password": "two"})
			r.outcomeOf("web", events.VerbStarted)
			r.quiet()
			begun := r.trace("db", "detect secret", "process "+secretDestination, "patch deployment")
			if len(spansOf(begun, "rollout deployment")) > 0 {
				t.Error("the rollout's span has ended before the rollout")
			}
			if err := test.end(r.actuator); err != nil {
				t.Fatal(err)
			}
			r.startActuator()
			selectNode("null")
			r.outcomeOf("web", events.VerbCompleted)

			trace := r.trace("db", "rollout deployment")
			r.looksLike(trace, plainOutline)
			rollout, patch := r.only(trace, "rollout deployment"), r.only(trace, "patch deployment")
			r.tagged(rollout, map[string]string{"keyturn.outcome": "completed", "error": ""})
			if rollout.Resource["service.instance.id"] == patch.Resource["service.instance.id"] {
				t.Error("the actuator that is gone has reported the rollout")
			}
			if trace.ID != begun.ID || rollout.Start.Before(patch.Start) || rollout.Start.After(patch.Start.Add(patch.Duration)) {
				t.Errorf("the rollout begins at %s, want while the patch was made", rollout.Start)
			}
		})
	}
}
