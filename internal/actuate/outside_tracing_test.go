//go:build !race

package actuate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// traced puts a change into a trace of its own, whose IDs repeat the digit.
func traced(digit string) func(*events.Change) {
	return func(change *events.Change) {
		change.Trace = events.TraceContext{Parent: "00-" + strings.Repeat(digit, 32) + "-" + strings.Repeat(digit, 16) + "-01"}
	}
}

// isProcess reports whether a span is that of the processing of an event.
func isProcess(span sdktrace.ReadOnlySpan) bool { return span.SpanKind() == trace.SpanKindConsumer }

// createdIn returns the span of the processing of the event that was made in the trace of a digit, nil if there is none.
func (m *recordedTelemetry) createdIn(digit string) sdktrace.ReadOnlySpan {
	for _, span := range m.spans.Ended() {
		if isProcess(span) && span.Parent().SpanID().String() == strings.Repeat(digit, 16) {
			return span
		}
	}
	return nil
}

// isLinked reports whether a span has a link to another one.
func isLinked(from, to sdktrace.ReadOnlySpan) bool {
	return slices.ContainsFunc(from.Links(), func(link sdktrace.Link) bool { return link.SpanContext.SpanID() == to.SpanContext().SpanID() })
}

func TestAPlanIsAChildOfTheNewestChangeAndLinkedWithAll(t *testing.T) {
	play(t, func(s *scene) {
		seen, digits, newest := s.instrument(), []string{"a", "b", "c"}, "c"
		s.beginReading("secret/a", "secret/b", "secret/c")
		earlier := len(seen.spansNamed("plan"))
		for _, digit := range digits {
			s.set("secret/"+digit, "password", "two", traced(digit))
		}
		s.pass(10 * time.Second)
		s.wantRolls("web")

		plans := seen.spansNamed("plan")[earlier:]
		if len(plans) != 1 {
			s.Fatalf("there are %d plans, want one", len(plans))
		}
		plan := plans[0]
		if got := len(plan.Links()); got != len(digits) {
			s.Errorf("the plan has %d links, want one to each of %d changes", got, len(digits))
		}
		for _, digit := range digits {
			process := seen.createdIn(digit)
			if process == nil {
				s.Fatalf("change %s has no span below what made it", digit)
			}
			if got := plan.Parent().SpanID() == process.SpanContext().SpanID(); got != (digit == newest) {
				s.Errorf("change %s is the parent of the plan: %t", digit, got)
			}
			if !isLinked(plan, process) {
				s.Errorf("the plan has no link to change %s", digit)
			}
			if got := isLinked(process, plan); got != (digit != newest) {
				s.Errorf("change %s is linked to the plan: %t", digit, got)
			}
		}
	})
}

func TestSpansSayHowAPatchFailedAndNotWhatTheAPIServerSaid(t *testing.T) {
	const secret = "hunter2"
	play(t, func(s *scene) {
		seen := s.instrument()
		s.beginWeb()
		s.refuse("web", apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("denied: token "+secret)))
		s.set("secret/db", "password", "two", traced("a"))
		s.pass(2 * time.Minute)
		s.wantTold("web failed patch-denied")
		if !strings.Contains(s.logText(), secret) {
			s.Error("not even the log has what the API server said")
		}

		failed := 0
		for _, span := range seen.spans.Ended() {
			if text := fmt.Sprint(span.Name(), span.Attributes(), span.Events(), span.Status()); strings.Contains(text, secret) {
				s.Errorf("a span has what the API server said: %s", text)
			}
			kind, code := attributeOf(span.Attributes(), "error.type"), attributeOf(span.Attributes(), "http.response.status_code")
			switch description := span.Status().Description; {
			case span.Name() != "patch deployment" || description == "":
			case description != "not patched" || kind != "Forbidden" || code != "403":
				s.Errorf("a patch has the status %q, error.type %s and the code %s", description, kind, code)
			default:
				failed++
			}
		}
		if failed == 0 {
			s.Error("no patch has failed")
		}
	})
}

func TestTheSpanOfARolloutIsMadeOnceByWhoeverSeesItsEnd(t *testing.T) {
	play(t, func(s *scene) {
		before := s.instrument()
		s.rolling()
		s.wantTold("web started content-changed")
		after := s.instrument()
		s.restartFor(time.Minute)
		s.fail("web")
		s.pass(time.Minute)
		s.wantTold("web failed deadline-exceeded")

		patches, spans := before.spansNamed("patch deployment"), after.spansNamed("rollout deployment")
		if n := len(before.spansNamed("rollout deployment")); n > 0 || len(patches) == 0 || len(spans) != 1 {
			s.Fatalf("before there are %d spans of the rollout and %d patches, and then %d of the rollout, want none, some and one",
				n, len(patches), len(spans))
		}
		patch, span := patches[len(patches)-1], spans[0]
		if span.Parent().SpanID() != patch.Parent().SpanID() || span.StartTime().Before(patch.StartTime()) || span.StartTime().After(patch.EndTime()) {
			s.Errorf("it begins at %s below %v, want while the patch was made, below its plan", span.StartTime(), span.Parent())
		}
		for key, want := range map[string]string{
			"keyturn.outcome": "failed", "keyturn.reason": "deadline-exceeded", "error.type": "deadline-exceeded",
		} {
			if got := attributeOf(span.Attributes(), key); got != want {
				s.Errorf("%s is %q, want %q", key, got, want)
			}
		}
	})
}

func TestThePatchWritesItsOwnAnnotationsAndNothingElse(t *testing.T) {
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b0-01"
	play(t, func(s *scene) {
		s.options.MaxRollsPerHour = 0
		templates := map[string]string{
			"web": "/spec/template", "statefulset/web": "/spec/template", "daemonset/web": "/spec/template",
			"cronjob/web": "/spec/jobTemplate/spec/template",
		}
		gone := annotated(annotationRecord, `{"secret/gone":"k0a1b2c3d:00000000000000000000000000000001@3/u"}`)
		for name := range templates {
			s.workload(name, auto, reads("secret/db", "configmap/app"))
			s.writeAs(workload.FieldManager, name, gone)
		}
		s.begin("secret/db", "configmap/app")
		s.writesSince(&s.seen)
		s.settled("secret/db", "password", "two", func(c *events.Change) { c.Trace.Parent = traceparent })
		writes := s.writesSince(&s.seen)
		if len(writes) != len(templates) {
			s.Fatalf("written are %+v, want each workload once", writes)
		}
		for _, w := range writes {
			sets, tests := make(map[string]any), make(map[string]any)
			for _, step := range stepsOf([]byte(w.body)) {
				if step.Op == "test" {
					tests[step.Path] = step.Value
				} else {
					sets[step.Path] = step.Value
				}
			}
			if uid := string(metaOf(s.object(w.workload)).GetUID()); tests["/metadata/uid"] != uid {
				s.Errorf("%s: the tested uid is %v, want %s, that of the workload", w.workload, tests["/metadata/uid"], uid)
			}
			const record = "/metadata/annotations/keyturn.dev~1rolled"
			var entries map[string]string
			if err := json.Unmarshal([]byte(fmt.Sprint(sets[record])), &entries); err != nil {
				s.Errorf("%s: the record is no JSON: %v", w.workload, err)
			}
			if got := slices.Sorted(maps.Keys(entries)); !slices.Equal(got, []string{"configmap/app", "secret/db"}) {
				s.Errorf("%s: the record is of %q, want it of what it reads, without secret/gone", w.workload, got)
			}
			delete(sets, record)
			template := templates[w.workload]
			want := map[string]any{
				template + "/metadata/annotations":                          map[string]any{}, // there were none
				template + "/metadata/annotations/keyturn.dev~1cause":       "secret/db (password)",
				template + "/metadata/annotations/keyturn.dev~1revision":    s.podAnnotation(w.workload, annotationRevision),
				template + "/metadata/annotations/keyturn.dev~1traceparent": traceparent,
				"/metadata/annotations/keyturn.dev~1last":                   metaOf(s.object(w.workload)).GetAnnotations()["keyturn.dev/last"],
			}
			if diff := cmp.Diff(want, sets); diff != "" {
				s.Errorf("%s: what it sets beside the record (-want +got):\n%s", w.workload, diff)
			}
		}
	})
}

func TestTheCauseNamesWhatIsBehindASecret(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.settled("secret/db", "password", "two", func(c *events.Change) {
			c.Cause = &events.Cause{Source: "externalsecret/db", Event: "bao/root/secret/shop/db/7"}
		})
		s.wantRolls("web")
		want := "secret/db (password) by externalsecret/db for bao/root/secret/shop/db/7"
		if got := s.podAnnotation("web", events.AnnotationCause); got != want {
			s.Errorf("got %q, want %q", got, want)
		}
	})
}
