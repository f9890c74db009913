package actuate

import (
	"bytes"
	"cmp"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// reasonCase is a situation in which a reason is given.
type reasonCase struct {
	reason     plan.Reason
	annotation string // default: auto
	ref        func(*workload.Reference)
	workload   func(*workload.Workload)
	change     func(*events.Change)
	from       func(*events.Change) // nil: it is not known
	options    func(*Options)
	// arrange is called before anything is decided, and meanwhile while the change waits for that.
	arrange, meanwhile func(*loop, *workload.Workload)
	// unexplained says that explain cannot give the reason: it depends on what the actuator does, or did before.
	unexplained bool
}

// reasonCases returns a case for each reason except three that are no decisions: unknown is about a source that the stream does not know, busy
// about a workload that another task is under way for, and history-pending about one that is decided once the history was read.
func reasonCases() []reasonCase {
	rolled := func(letter, version string) func(*workload.Workload) {
		return func(w *workload.Workload) {
			w.Rolled = map[string]workload.RolledFor{"secret/" + w.Refs[0].Name: {Fingerprint: fp(letter), Version: version, UID: "uid-" + w.Refs[0].Name}}
		}
	}
	created := func(c *events.Change) { c.Created, c.CreatedAt, c.Previous = true, "100", "" }
	deleted := func(c *events.Change) { c.Verb = events.VerbDeleted }
	rollOnDelete := func(o *Options) { o.RollOnDelete = true }
	pods := func(w *workload.Workload) { w.Progress.Pods = 3 }
	peer := func(l *loop, w *workload.Workload, mutate func(*workload.Workload)) {
		p := *w
		p.ID.Name, p.ID.UID = "peer", "uid-peer"
		mutate(&p)
		l.dispatcher.index.Listed(&p, "")
	}
	return []reasonCase{
		{reason: plan.NotOptedIn, annotation: "configmaps"},
		{reason: plan.Excluded, annotation: "auto, !secret/excluded"},
		{reason: plan.SourceIgnored, change: func(c *events.Change) { c.Ignore = true }},
		{reason: plan.PulledOnly, ref: func(r *workload.Reference) { r.ByPull = true }},
		{reason: plan.SourceDeleted, change: func(c *events.Change) { c.Verb = events.VerbDeleted }},
		{reason: plan.SourceNeeded, change: deleted, options: rollOnDelete},
		{reason: plan.Deleted, change: deleted, options: rollOnDelete, ref: func(r *workload.Reference) { r.Optional = true }},
		{
			reason: plan.NamespaceTerminating, unexplained: true, change: deleted, ref: func(r *workload.Reference) { r.Optional = true },
			options: func(o *Options) {
				rollOnDelete(o)
				o.Client = terminating()
			},
		},
		{reason: plan.FirstSeen, change: func(c *events.Change) {
			c.Verb, c.ChangedAt, c.Previous, c.Changed = events.VerbObserved, "", "", nil
			c.Keys["password"] = events.Key{Fingerprint: fp("2")}
		}},
		{reason: plan.KeysNotConsumed, ref: func(r *workload.Reference) { r.Keys = []string{"user"} }},
		{reason: plan.KeyMissing, ref: func(r *workload.Reference) { r.Keys, r.Required = []string{"password"}, []string{"password"} }, change: func(c *events.Change) {
			c.Keys["password"] = events.Key{ChangedAt: "100"}
		}},
		{reason: plan.Stale, workload: rolled("c", "110")},
		{reason: plan.AlreadyRolled, workload: rolled("b", "100")},
		{reason: plan.SameContent, workload: rolled("b", "80")},
		{reason: plan.ChangedBack, unexplained: true, from: func(c *events.Change) { c.ResourceVersion = "90" }},
		{reason: plan.ChangedMeanwhile, unexplained: true, workload: pods, from: func(c *events.Change) { c.ResourceVersion = "90" }},
		{reason: plan.PodsNewer, workload: func(w *workload.Workload) { w.TemplateVersion = "200" }},
		{reason: plan.PodsStarting, workload: func(w *workload.Workload) { w.TemplateVersion, w.Progress.Pods = "200", 3 }},
		{reason: plan.Reverted, workload: func(w *workload.Workload) {
			w.Reverted = map[string]workload.Reverted{"secret/" + w.Refs[0].Name: {
				Count: plan.RevertRetries + 1, Template: w.TemplateID(), Version: "100", UID: "uid-" + w.Refs[0].Name,
			}}
		}},
		{reason: plan.PodsWaited, change: created},
		{reason: plan.CreationIgnored, change: created, ref: func(r *workload.Reference) { r.Optional = true }, options: func(o *Options) {
			o.RollOnCreate = plan.CreateNever
		}},
		{
			reason: plan.Recreated, workload: rolled("b", "90"), change: func(c *events.Change) { c.Verb, c.UID = events.VerbObserved, "another" },
			options: func(o *Options) { o.RollOnCreate = plan.CreateAlways },
		},
		{reason: plan.Appeared, change: created, ref: func(r *workload.Reference) { r.Optional = true }},
		{reason: plan.Changed},
		{reason: plan.Aborted, workload: func(w *workload.Workload) { w.Aborted = true }},
		{reason: plan.Suspended, workload: func(w *workload.Workload) { w.Suspended = true }},
		{
			reason: plan.Limit, unexplained: true, options: func(o *Options) { o.MaxRollouts = 1 }, workload: pods,
			arrange: func(l *loop, w *workload.Workload) {
				peer(l, w, pods)
				l.rollouts.following.follow(workload.Key{Kind: "deployment", Namespace: "shop", Name: "peer"}, &rollout{})
			},
		},
		{
			reason: plan.NamespaceLimit, unexplained: true, options: func(o *Options) { o.MaxRolloutsPerNamespace = 1 }, workload: pods,
			arrange: func(l *loop, w *workload.Workload) {
				peer(l, w, pods)
				l.rollouts.following.follow(workload.Key{Kind: "deployment", Namespace: "shop", Name: "peer"}, &rollout{})
			},
		},
		{
			reason: plan.PeerFailed, unexplained: true, arrange: func(l *loop, w *workload.Workload) {
				peer(l, w, func(p *workload.Workload) { p.Refs = w.Refs; rolled("b", "100")(p) })
				l.rollouts.peers.add(workload.Key{Kind: "deployment", Namespace: "shop", Name: "peer"})
			},
		},
		{
			reason: plan.CanaryFirst, unexplained: true, arrange: func(l *loop, w *workload.Workload) {
				peer(l, w, func(p *workload.Workload) { p.Refs = w.Refs })
				key := workload.Key{Kind: "deployment", Namespace: "shop", Name: "peer"}
				l.rollouts.canaries.chosen[sourceChange{"shop", "secret/" + w.Refs[0].Name, "100", "uid-" + w.Refs[0].Name}] = key
				l.rollouts.following.rollouts[key] = &rollout{
					started: events.Outcome{Sources: []events.OutcomeSource{{Source: "secret/" + w.Refs[0].Name}}},
				}
			},
		},
		{
			reason: plan.LowerWave, unexplained: true, arrange: func(l *loop, w *workload.Workload) {
				peer(l, w, func(p *workload.Workload) { p.Wave = -1 })
				l.rollouts.following.rollouts[workload.Key{Kind: "deployment", Namespace: "shop", Name: "peer"}] = &rollout{
					started: events.Outcome{Sources: []events.OutcomeSource{{Source: "secret/" + w.Refs[0].Name}}},
				}
			},
		},
		{reason: plan.ReloaderFirst, unexplained: true, arrange: func(l *loop, w *workload.Workload) {
			l.besideReloader.last = written.Add(DefaultOptions().SettleMax) // when it is decided
			l.besideReloader.by["shop"] = reloaderRoll{written, l.besideReloader.last}
		}},
		{reason: plan.OnHold, unexplained: true, workload: func(w *workload.Workload) { w.Hold = "tofu apply" }},
		{reason: plan.SourceOnHold, change: func(c *events.Change) { c.Hold = "tofu apply" }},
		{reason: plan.WindowClosed, unexplained: true, options: func(o *Options) { o.Window = "0 1 * * * for 1h" }, workload: func(w *workload.Workload) {
			windowed, _ := workload.Read(deployments, webDeployment("1", rollOn("auto")), workload.Reading{Window: windowsOf("0 1 * * * for 1h")})
			windowed.ID, windowed.Version, windowed.Refs, windowed.OptIn = w.ID, w.Version, w.Refs, w.OptIn
			*w = *windowed
		}},
		{reason: plan.RolledRecently, unexplained: true, workload: func(w *workload.Workload) {
			recently := webDeployment("1", map[string]string{
				workload.AnnotationRollOn: "auto", workload.AnnotationMinInterval: "10m", "keyturn.dev/rolled-at": written.Format(time.RFC3339),
			})
			rolled, _ := workload.Read(deployments, recently, workload.Reading{})
			rolled.ID, rolled.Version, rolled.Refs, rolled.OptIn = w.ID, w.Version, w.Refs, w.OptIn
			*w = *rolled
		}},
		{reason: plan.RolledTooOften, unexplained: true, workload: func(w *workload.Workload) {
			often := webDeployment("1", map[string]string{
				workload.AnnotationRollOn: "auto", workload.AnnotationMaxRollsPerHour: "3", "keyturn.dev/rolls": "3 since " + written.Format(time.RFC3339),
			})
			rolled, _ := workload.Read(deployments, often, workload.Reading{})
			rolled.ID, rolled.Version, rolled.Refs, rolled.OptIn = w.ID, w.Version, w.Refs, w.OptIn
			*w = *rolled
		}},
		{reason: plan.Pausing, unexplained: true, workload: func(w *workload.Workload) {
			w.Pause = workload.Pause{Period: time.Hour, Begun: written}
		}},
		{
			reason: plan.FilesPending, unexplained: true,
			options: func(o *Options) { o.InPlace = true },
			workload: func(w *workload.Workload) {
				mounting := mountingDeployment(w.Refs[0].Name, map[string]string{
					workload.AnnotationRollOn: "auto", workload.AnnotationReload: "http://:9090/-/reload",
				})
				told, _ := workload.Read(deployments, mounting, workload.Reading{InPlace: true})
				told.ID, told.Version, told.Progress = w.ID, w.Version, w.Progress
				*w = *told
			},
		},
		{reason: plan.KindNotServed, unexplained: true, meanwhile: func(l *loop, w *workload.Workload) {
			l.dispatcher.index.Forget(w.Key(), w.ID.UID, "")
			l.dispatcher.index.Unserve(inventory.Place{Kind: w.ID.Kind}, written)
		}},
		{reason: plan.NoPatch, unexplained: true, meanwhile: func(l *loop, _ *workload.Workload) { l.dispatcher.kinds = nil }},
		{reason: plan.DryRun, unexplained: true, options: func(o *Options) { o.DryRun = true }},
		{
			reason: plan.WorkloadGone, unexplained: true,
			meanwhile: func(l *loop, w *workload.Workload) { l.dispatcher.index.Forget(w.Key(), w.ID.UID, "") },
		},
	}
}

// told is what a person can find out about a decision.
type told struct {
	log        bytes.Buffer
	spans      *tracetest.SpanRecorder
	metrics    *sdkmetric.ManualReader
	outcomes   []events.Outcome
	kubeEvents []*corev1.Event
	explained  plan.Reason
}

// decide handles a change to the end, as the loop would.
func (tt *reasonCase) decide(t *testing.T) *told {
	t.Helper()
	got := &told{spans: tracetest.NewSpanRecorder(), metrics: sdkmetric.NewManualReader()}
	name := tt.reason.String()
	ref := workload.Reference{Kind: events.KindSecret, Name: name}
	if tt.ref != nil {
		tt.ref(&ref)
	}
	w := workloadOf(t, cmp.Or(tt.annotation, "auto"), ref, func(w *workload.Workload) { w.ID.Name, w.ID.UID = "web-"+name, "uid-web-"+name })
	if tt.workload != nil {
		tt.workload(w)
	}
	change := changeOf(func(c *events.Change) { c.Source.Name, c.UID, c.Time = name, "uid-"+name, written })
	if tt.change != nil {
		tt.change(&change)
	}
	var from *events.Change
	if tt.from != nil {
		before := change
		tt.from(&before)
		from = &before
	}

	now, options := written, testOptions()
	options.Now = func() time.Time { return now }
	options.Logger = slog.New(slog.NewJSONHandler(&got.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	options.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(got.spans)).Tracer("")
	options.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(got.metrics)).Meter("")
	client := fake.NewClientset()
	client.PrependReactor("patch", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		after := webDeployment("200", nil)
		after.Name, after.UID = w.ID.Name, types.UID(w.ID.UID)
		after.Spec.Template.Annotations = map[string]string{annotationRevision: revisionIn(action)}
		return true, after, nil
	})
	options.Client = client
	if tt.options != nil {
		tt.options(&options)
	}
	l := loopOf(t, options, w)
	if tt.arrange != nil {
		tt.arrange(l, w)
	}
	spanCtx, span := options.Tracer.Start(t.Context(), "process")
	event := &inFlightEvent{delivery: &events.Delivery{Change: change}, span: span}
	event.open = 1 // so that it is not finished: no message came with it
	l.intake.consider(spanCtx, event, w, from)
	if tt.meanwhile != nil {
		tt.meanwhile(l, w)
	}
	now = now.Add(options.SettleMax)
	l.dispatcher.dispatch(t.Context())
	if !l.patcher.idle() {
		l.completion.finish(t.Context(), <-l.patcher.results)
	}
	span.End()

	for _, one := range l.outbox.waiting {
		got.outcomes = append(got.outcomes, one.outcome)
	}
	for event := l.concluder.reporter.kube.waiting(); event != nil; event = l.concluder.reporter.kube.waiting() {
		got.kubeEvents = append(got.kubeEvents, event)
	}
	if !tt.unexplained {
		got.explained = options.Policy().Decide(w, change, plan.Past{}).Reason // what explain decides
	}
	return got
}

func TestEveryReasonIsToldEverywhereFromOneDefinition(t *testing.T) {
	tested := map[plan.Reason]bool{plan.Unknown: true, plan.Busy: true, plan.HistoryPending: true}
	for _, tt := range reasonCases() {
		tested[tt.reason] = true
		name := tt.reason.String()
		t.Run(name, func(t *testing.T) {
			got := tt.decide(t)
			if want := `"reason":"` + name + `"`; !strings.Contains(got.log.String(), want) {
				t.Errorf("no log line has %s:\n%s", want, &got.log)
			}
			if !got.spanSays(name) {
				t.Error("no span has an event of the name, with the attribute keyturn.reason")
			}
			if n := got.counted(t, name); n != 1 {
				t.Errorf("keyturn.decisions has counted %d, want 1", n)
			}
			if told := got.outcome(name); told == tt.reason.Silent() {
				t.Errorf("there is an outcome: %t", told)
			}
			if heard := got.kubeEvent(name); heard != plan.Loud(name) {
				t.Errorf("there is a Kubernetes Event: %t", heard)
			}
			if !tt.unexplained && got.explained != tt.reason {
				t.Errorf("explain decides %s, want %s", got.explained, tt.reason)
			}
		})
	}
	for _, reason := range plan.Reasons() {
		if !tested[reason] {
			t.Errorf("%s is not tested", reason)
		}
	}
}

func (got *told) spanSays(reason string) bool {
	for _, span := range got.spans.Ended() {
		for _, event := range span.Events() {
			set := attribute.NewSet(event.Attributes...)
			if value, ok := set.Value(reasonKey); ok && event.Name == reason && value.AsString() == reason {
				return true
			}
		}
	}
	return false
}
