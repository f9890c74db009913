//go:build !race

package actuate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keyturn/keyturn/internal/events"
)

// traced puts a change into a trace of its own, whose IDs repeat the digit. With a resourceVersion it was written then, and not now.
func traced(digit, version string) func(*events.Change) {
	return func(change *events.Change) {
		change.Trace = events.TraceContext{Parent: "00-" + strings.Repeat(digit, 32) + "-" + strings.Repeat(digit, 16) + "-01"}
		now := change.ResourceVersion
		if version == "" {
			return
		}
		change.ResourceVersion, change.ChangedAt = version, version
		for name, key := range change.Keys {
			if key.ChangedAt == now {
				key.ChangedAt = version
				change.Keys[name] = key
			}
		}
	}
}

// isProcess reports whether a span is that of the processing of an event.
func isProcess(span sdktrace.ReadOnlySpan) bool { return span.SpanKind() == trace.SpanKindConsumer }

// createdIn returns the span of the processing of the event that was made in the trace of a digit, nil if there is none.
func (m *telemetry) createdIn(digit string) sdktrace.ReadOnlySpan {
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
	for _, test := range []struct {
		name string
		// digits are those of the traces of the changes, in the order in which they come, and newest is the last in the order of resourceVersions.
		digits []string
		newest string
	}{
		{"the newest last", []string{"a", "b", "c"}, "c"},
		{"the newest first", []string{"a", "b"}, "a"},
	} {
		playOf(t, test.name, func(s *scene) {
			seen := s.instrument()
			s.workload("web", auto, reads("secret/a", "secret/b", "secret/c"))
			s.begin("secret/a", "secret/b", "secret/c")
			earlier := len(seen.spansNamed("plan"))
			before := s.nextVersion()
			for i, digit := range test.digits {
				version := ""
				if i > 0 && test.digits[0] == test.newest {
					version = before
				}
				s.set("secret/"+digit, "password", "two", traced(digit, version))
			}
			s.pass(10 * time.Second)
			s.wantRolls("web")

			plans, newest := seen.spansNamed("plan")[earlier:], seen.createdIn(test.newest)
			if len(plans) != 1 || newest == nil {
				s.Fatalf("there are %d plans, and the newest change has the span %v, want one plan", len(plans), newest)
			}
			plan := plans[0]
			if plan.Parent().SpanID() != newest.SpanContext().SpanID() {
				s.Errorf("the parent of the plan is not the newest change: %v", plan.Parent())
			}
			if got := len(plan.Links()); got != len(test.digits) {
				s.Errorf("the plan has %d links, want one to each of %d changes", got, len(test.digits))
			}
			for _, digit := range test.digits {
				process := seen.createdIn(digit)
				if process == nil {
					s.Fatalf("change %s has no span below what made it", digit)
				}
				if !isLinked(plan, process) {
					s.Errorf("the plan has no link to change %s", digit)
				}
				if got := isLinked(process, plan); got != (digit != test.newest) {
					s.Errorf("change %s is linked to the plan: %t", digit, got)
				}
			}
		})
	}
}

func TestAChangeWithoutATraceBeginsOne(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.beginWeb()
		s.set("secret/db", "password", "two")
		s.pass(10 * time.Second)
		var roots []sdktrace.ReadOnlySpan
		for _, span := range seen.spans.Ended() {
			if isProcess(span) {
				roots = append(roots, span)
			}
		}
		if len(roots) != 1 || roots[0].Parent().IsValid() || len(roots[0].Links()) > 0 || !roots[0].SpanContext().IsValid() {
			s.Errorf("the events have the spans %v, want one root without links", roots)
		}
	})
}

func TestAWorkloadThatGoesOnWaitingMakesNoMoreSpans(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.options.MaxRollouts = 1
		s.workload("web", auto, reads("secret/db"), onHold)
		s.workload("busy", auto, reads("secret/db"))
		s.begin("secret/db")
		s.stall("busy")
		s.rotate("two", "busy")
		s.edit("web", letGo)
		s.pass(time.Second)

		// reasons returns those of the plans of the workload that waits, one for each plan.
		reasons := func() []string {
			var reasons []string
			for _, span := range seen.spansNamed("plan") {
				if attributeOf(span.Attributes(), "k8s.deployment.name") == "web" {
					last := span.Events()[len(span.Events())-1]
					reasons = append(reasons, last.Name)
				}
			}
			return reasons
		}
		want := []string{"on-hold", "limit-reached"}
		if got := reasons(); !slices.Equal(got, want) {
			s.Errorf("the plans say %q, want %q", got, want)
		}
		s.pass(10 * time.Minute) // It is looked at every few seconds.
		if got := reasons(); !slices.Equal(got, want) {
			s.Errorf("after ten minutes the plans say %q, want %q", got, want)
		}
		s.fail("busy") // A decision to wait for something else is a new one.
		s.pass(10 * time.Minute)
		if got, want := reasons(), append(want, "peer-failed"); !slices.Equal(got, want) {
			s.Errorf("after a failure the plans say %q, want %q", got, want)
		}
		s.wantRolls()
	})
}

func TestSpansSayHowAPatchFailedAndNotWhatTheAPIServerSaid(t *testing.T) {
	const secret = "hunter2"
	play(t, func(s *scene) {
		seen := s.instrument()
		s.beginWeb()
		s.refuse("web", apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("denied: token "+secret)))
		s.set("secret/db", "password", "two", traced("a", ""))
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

func TestEachTryOfAPatchIsBelowItsOwnPlan(t *testing.T) {
	play(t, func(s *scene) {
		seen := s.instrument()
		s.workload("web", auto, reads("secret/db"))
		s.begin("secret/db")
		s.refuse("web", apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("denied")))
		s.set("secret/db", "password", "two", traced("a", ""))
		s.pass(5 * time.Second)
		s.refuse("web", nil)
		s.pass(2 * time.Minute)
		s.wantRolls("web")
		s.wantTold("web started content-changed", "web completed rolled-out")

		inTrace := func(name string) []sdktrace.ReadOnlySpan {
			return slices.DeleteFunc(seen.spansNamed(name), func(span sdktrace.ReadOnlySpan) bool {
				return span.SpanContext().TraceID().String() != strings.Repeat("a", 32)
			})
		}
		plans, tries, rollouts := inTrace("plan"), inTrace("patch deployment"), inTrace("rollout deployment")
		if len(tries) < 2 || len(plans) != len(tries) || len(rollouts) != 1 {
			s.Fatalf("there are %d plans, %d tries and %d rollouts, want as many plans as tries, at least two, and one rollout",
				len(plans), len(tries), len(rollouts))
		}
		for i, try := range tries {
			count, kind := fmt.Sprint(i), "Forbidden"
			if i == 0 {
				count = ""
			}
			if i == len(tries)-1 {
				kind = ""
			}
			if got := attributeOf(try.Attributes(), "http.request.resend_count"); got != count {
				s.Errorf("try %d has the count %q, want %q", i, got, count)
			}
			if got := attributeOf(try.Attributes(), "error.type"); got != kind {
				s.Errorf("try %d has the error %q, want %q", i, got, kind)
			}
			if try.Parent().SpanID() != plans[i].SpanContext().SpanID() {
				s.Errorf("the parent of try %d is not its plan", i)
			}
		}
		if rollouts[0].Parent().SpanID() != plans[len(plans)-1].SpanContext().SpanID() {
			s.Error("the parent of the rollout is not the last plan")
		}
	})
}

func TestTheSpanOfARolloutIsMadeOnceByWhoeverSeesItsEnd(t *testing.T) {
	for _, test := range []struct {
		name                 string
		end                  func(*scene)
		outcome, reason, err string
	}{
		{"that it is complete", func(s *scene) { s.finish("web") }, "completed", "rolled-out", ""},
		{"that it has failed", func(s *scene) { s.fail("web") }, "failed", "deadline-exceeded", "deadline-exceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			play(t, func(s *scene) {
				before := s.instrument()
				s.rolling()
				s.wantTold("web started content-changed")
				after := s.instrument()
				s.restart()
				s.pass(time.Minute)
				test.end(s)
				s.pass(time.Minute)
				s.wantTold("web " + test.outcome + " " + test.reason)

				patches, spans := before.spansNamed("patch deployment"), after.spansNamed("rollout deployment")
				if n := len(before.spansNamed("rollout deployment")); n > 0 || len(patches) == 0 || len(spans) != 1 {
					s.Fatalf("before there are %d spans of the rollout and %d patches, and then %d of the rollout, want none, some and one",
						n, len(patches), len(spans))
				}
				patch, span := patches[len(patches)-1], spans[0]
				if span.Parent().SpanID() != patch.Parent().SpanID() || span.StartTime().Before(patch.StartTime()) || span.StartTime().After(patch.EndTime()) {
					s.Errorf("it begins at %s below %v, want while the patch was made, below its plan", span.StartTime(), span.Parent())
				}
				var got []string
				for _, key := range []string{"keyturn.outcome", "keyturn.reason", "error.type"} {
					got = append(got, attributeOf(span.Attributes(), key))
				}
				if want := []string{test.outcome, test.reason, test.err}; !slices.Equal(got, want) {
					s.Errorf("it has the attributes %q, want %q", got, want)
				}
			})
		})
	}
}
