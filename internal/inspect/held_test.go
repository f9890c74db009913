package inspect

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func publishOutcomes(t *testing.T, b *bus.Bus, outcomes ...events.Outcome) {
	t.Helper()
	natstest.Publish(t, func() error { return errors.Join(b.PublishOutcomes(t.Context(), outcomes...)...) })
}

// outcomeOf is an outcome of a Deployment for the change of the Secret db.
func outcomeOf(name string, verb events.Verb, reason, message string, at time.Time) events.Outcome {
	return events.Outcome{
		Cluster: "demo", Verb: verb, Reason: reason, Message: message, Time: at, Cause: "uid/100", ResourceVersion: "51",
		Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: name, UID: "uid-" + name},
		Sources:  []events.OutcomeSource{{Source: "secret/db", Event: "uid/100"}},
	}
}

// heldFor is the outcome of the Deployment web that waits for a reason, with what the actuator appends to the reason's sentence.
func heldFor(reason plan.Reason, about string) events.Outcome {
	return outcomeOf("web", events.VerbHeld, reason.String(), reason.Sentence()+about, historyNow)
}

func rolled(o events.Outcome) events.Outcome {
	o.StartedAt, o.Revision = o.Time, "r-"+o.Workload.Name
	return o
}

// explained returns the explanation of a Deployment five minutes later.
func explained(t *testing.T, b *bus.Bus, web *appsv1.Deployment, output Format) string {
	t.Helper()
	options := optionsFor(web)
	options.Now = historyNow.Add(5 * time.Minute)
	report, err := reportOf(t, options, b, "deployment/"+web.Name)
	var out bytes.Buffer
	if err == nil {
		err = report.Write(&out, output)
	}
	testkit.Must(t, err)
	return out.String()
}

func TestExplainSaysWhyAWorkloadWaitsAndWhatEndsThat(t *testing.T) {
	web := deploymentOf("web", rollOn("auto"))
	onHold := deploymentOf("web", map[string]string{workload.AnnotationRollOn: "auto", events.AnnotationHold: "tofu apply"})
	done := deploymentOf("web", map[string]string{workload.AnnotationRollOn: "auto", "keyturn.dev/rolled": `{"secret/db":"` + fp("b") + `@100/uid"}`})
	const row, since = "hold (%), then roll (content-changed): content that the pods read has changed", "It has been held since 2026-03-14T15:09:26Z (5m ago): "
	const rolls = "  roll (content-changed): content that the pods read has changed"
	lowerWave, soon := heldFor(plan.LowerWave, ": deployment/api"), ": until 2026-03-14T15:19:26Z"
	for _, test := range []struct {
		name     string
		web      *appsv1.Deployment
		outcomes []events.Outcome
		want     []string
	}{
		{
			name: "of a limit", web: web, outcomes: []events.Outcome{heldFor(plan.Limit, "")},
			want: []string{
				since + plan.Limit.Sentence() + " (limit-reached)\nIt rolls once rollouts have ended and its turn has come.\n",
				"\nPending: secret/db.\n", strings.Replace(row, "%", "limit-reached", 1),
			},
		},
		{
			name: "of a lower wave that is under way", web: web,
			outcomes: []events.Outcome{lowerWave, rolled(outcomeOf("api", events.VerbStarted, "content-changed", "", historyNow.Add(time.Minute)))},
			want: []string{
				since + plan.LowerWave.Sentence() + ": deployment/api (lower-wave)\n" +
					"deployment/api: started at 2026-03-14T15:10:26Z (4m ago) (content-changed)\nIt rolls once the workloads of lower waves are done.\n",
				strings.Replace(row, "%", "lower-wave", 1),
			},
		},
		{
			name: "of a time that is to come", web: web, outcomes: []events.Outcome{heldFor(plan.RolledRecently, soon)},
			want: []string{" (rolled-recently)\nThat ends at 2026-03-14T15:19:26Z (in 5m).\n", strings.Replace(row, "%", "rolled-recently", 1)},
		},
		{
			name: "of a time that has come", web: web, outcomes: []events.Outcome{heldFor(plan.Pausing, ": until 2026-03-14T15:10:26Z")},
			want: []string{
				"It was held at 2026-03-14T15:09:26Z (5m ago): " + plan.Pausing.Sentence() + ": until 2026-03-14T15:10:26Z (pause-period). " +
					"That is over: that time has come.\n", "Nothing is known to hold it", rolls,
			},
		},
		{
			name: "of what somebody has said in the words of a time", web: onHold, outcomes: []events.Outcome{heldFor(plan.OnHold, ": until Monday")},
			want: []string{since + plan.OnHold.Sentence() + ": until Monday (on-hold)\n\n", strings.Replace(row, "%", "on-hold", 1)},
		},
		{
			name: "of a hold that was taken off", web: web, outcomes: []events.Outcome{heldFor(plan.OnHold, ": tofu apply")},
			want: []string{"(on-hold). That is over: the hold was taken off.\n", rolls},
		},
		{
			name: "of a hold of a source that was taken off", web: web, outcomes: []events.Outcome{heldFor(plan.SourceOnHold, ": migration")},
			want: []string{"(on-hold). That is over: what held it has ended.\n", rolls},
		},
		{
			name: "of a hold of a source from before that reason was renamed", web: web,
			outcomes: []events.Outcome{outcomeOf("web", events.VerbHeld, "source-on-hold", plan.SourceOnHold.Sentence()+": migration", historyNow)},
			want:     []string{"(on-hold). That is over: what held it has ended.\n", rolls},
		},
		{
			name: "that it waits no more, because it has the content", web: done, outcomes: []events.Outcome{lowerWave},
			want: []string{"That is over: nothing is pending any more.\n", "Nothing is pending: it rolls at the next change.\n", "  skip (up-to-date): "},
		},
		{
			name: "that the API server refused its patch", web: web,
			outcomes: []events.Outcome{outcomeOf("web", events.VerbFailed, events.ReasonPatchDenied, "denied by policy", historyNow)},
			want: []string{
				"It was to be rolled for secret/db: failed at 2026-03-14T15:09:26Z (5m ago) (patch-denied): denied by policy\n",
				"Pending: secret/db. The API server refuses the patch, which is tried again, in the end every ten minutes.\n",
				"  refused (patch-denied): ",
			},
		},
		{
			name: "that its rollout was reverted", web: web,
			outcomes: []events.Outcome{rolled(outcomeOf("web", events.VerbFailed, "reverted", "by an operator", historyNow))},
			want: []string{
				"It was last rolled at 2026-03-14T15:09:26Z (5m ago) for secret/db: failed (reverted): by an operator\n",
				"Pending: secret/db. Another client has reverted the last rollout: it rolls again 1, 5 and 15 minutes after it was.\n", rolls,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := natstest.Buses(t, "demo")[0]
			publish(t, b, changeOfDB())
			publishOutcomes(t, b, test.outcomes...)
			said := explained(t, b, test.web, "")
			for _, want := range test.want {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
		})
	}
}

func TestAHoldOfTwoChangesLastsUntilBothAreDecided(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	app := changeOfDB()
	app.Source = events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "app"}
	app.UID = "uid-app"
	publish(t, b, app)
	web := deploymentOf("web", rollOn("auto, configmap/app"))
	held := heldFor(plan.Limit, "")
	held.Sources = append(held.Sources, events.OutcomeSource{Source: "configmap/app"})
	skipped := func(source string) events.Outcome {
		o := outcomeOf("web", events.VerbSkipped, "up-to-date", "", historyNow.Add(time.Minute))
		o.Sources, o.Cause = []events.OutcomeSource{{Source: source}}, "uid/"+source
		return o
	}
	// This ends a rollout that began before the workload was held.
	ended := outcomeOf("web", events.VerbCompleted, "rolled-out", "", historyNow.Add(time.Minute))
	ended.StartedAt, ended.Revision, ended.Cause, ended.Sources = historyNow.Add(-time.Minute), "r", "uid/90", held.Sources
	publishOutcomes(t, b, held, ended, skipped("secret/db"))
	if said := explained(t, b, web, ""); !strings.Contains(said, "It has been held since") {
		t.Errorf("when one is skipped, it says nothing of the hold:\n%s", said)
	}
	publishOutcomes(t, b, skipped("configmap/app"))
	if said := explained(t, b, web, ""); strings.Contains(said, "held") {
		t.Errorf("when both are skipped, it says that it is held:\n%s", said)
	}
}

func TestExplainTellsTheTimesOfChangesFromTheHistory(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	last := uint64(0)
	for i, version := range []string{"100", "200", "300"} {
		change := changeOfDB()
		change.ResourceVersion, change.WrittenAt = version, historyNow.Add(time.Duration(i)*time.Minute)
		if change.ChangedAt = version; version == "300" {
			change.ChangedAt = "200" // Only its annotations were written.
		}
		before := last
		natstest.Publish(t, func() (err error) {
			last, err = b.PublishChange(t.Context(), change, before)
			return err
		})
	}
	for version, want := range map[string]string{
		"100": "  2026-03-14T15:10:26Z (4m ago)  2026-03-14T15:09:26Z (5m ago)  ", "90": "  2026-03-14T15:10:26Z (4m ago)  resourceVersion 90  ",
	} {
		web := deploymentOf("web", map[string]string{
			workload.AnnotationRollOn: "auto", "keyturn.dev/rolled": `{"secret/db":"` + fp("a") + "@" + version + `/uid"}`,
		})
		if said := explained(t, b, web, ""); !strings.Contains(said, want) {
			t.Errorf("rolled for %s: it does not say %q:\n%s", version, want, said)
		}
	}
}

func TestGoldenExplanationHasTheFieldsOfTheEvents(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	publishOutcomes(t, b, heldFor(plan.LowerWave, ": deployment/api"),
		rolled(outcomeOf("api", events.VerbStarted, "content-changed", "", historyNow.Add(time.Minute))))
	web := deploymentOf("web", rollOn("auto"))
	testkit.Golden(t, "testdata/explain.golden.json", []byte(explained(t, b, web, "json")))
}
