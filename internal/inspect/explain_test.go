package inspect

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// fp returns a fingerprint that differs with the letter.
func fp(letter string) string { return "k0a1b2c3d:" + strings.Repeat("0", 31) + letter }

func publish(t *testing.T, bus *events.Bus, change events.Change) {
	t.Helper()
	natstest.Publish(t, func() error {
		_, err := bus.PublishChange(t.Context(), change, 0)
		return err
	})
}

// explainInShop is Explain for a workload in the namespace shop. It asks again while the stream does not answer.
func explainInShop(t *testing.T, options ExplainOptions, bus *events.Bus, name string, out *bytes.Buffer) error {
	t.Helper()
	return natstest.Answered(t, func() error {
		out.Reset()
		return Explain(t.Context(), options, &bus.Reader, name, "shop", out)
	})
}

// changeOfDB is a change of the key password of the Secret db.
func changeOfDB() events.Change {
	return events.Change{
		Cluster: "demo", Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}, Verb: events.VerbChanged,
		UID: "uid", ResourceVersion: "100", ChangedAt: "100", Fingerprint: fp("b"), Previous: fp("a"), Changed: []string{"password"},
		Time: historyNow, WrittenAt: historyNow, Keys: map[string]events.Key{"password": {Fingerprint: fp("2"), ChangedAt: "100"}},
	}
}

// deploymentOf is a Deployment that reads the Secret db.
func deploymentOf(name string, annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "50", Annotations: annotations,
			CreationTimestamp: metav1.NewTime(historyNow.Add(-time.Hour)),
		},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}}},
		}}}}},
	}
}

func rollOn(text string) map[string]string { return map[string]string{workload.AnnotationRollOn: text} }

func TestExplainSaysWhatWouldHappenAndWhy(t *testing.T) {
	bus := natstest.Buses(t, "demo")[0]
	publish(t, bus, changeOfDB())
	done := deploymentOf("done", map[string]string{
		workload.AnnotationRollOn: "secret/db", "keyturn.dev/rolled": `{"secret/db":"` + fp("b") + `@100/uid"}`,
	})
	publishOutcomes(t, bus, events.Outcome{
		Cluster: "demo", Verb: events.VerbStarted, Reason: "content-changed", Time: historyNow, StartedAt: historyNow, Cause: "uid/100",
		Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: "done", UID: "uid-done"}, ResourceVersion: "51", Revision: "r",
		Sources: []events.OutcomeSource{{Source: "secret/db"}},
	})
	old := deploymentOf("old", rollOn("auto"))
	old.Spec.Template.Annotations = map[string]string{"keyturn.dev/revision": "r"}
	onHold := map[string]string{workload.AnnotationRollOn: "auto", events.AnnotationHold: "tofu apply"}
	asked := map[string]string{workload.AnnotationRollOn: "auto", events.AnnotationHold: "tofu apply", workload.AnnotationRollNow: "1"}
	windowed := func(text string) map[string]string {
		return map[string]string{workload.AnnotationRollOn: "auto", workload.AnnotationWindow: text}
	}
	client := fake.NewClientset(deploymentOf("held", onHold), deploymentOf("asked", asked), deploymentOf("recent", map[string]string{
		workload.AnnotationRollOn: "auto", workload.AnnotationMinInterval: "10m", "keyturn.dev/rolled-at": historyNow.Format(time.RFC3339),
	}), deploymentOf("often", map[string]string{
		workload.AnnotationRollOn: "auto", workload.AnnotationMaxRollsPerHour: "5", "keyturn.dev/rolls": "5 since " + historyNow.Format(time.RFC3339),
	}), deploymentOf("nightly", windowed("0 1 * * * for 3h Europe/Berlin")),
		deploymentOf("wrong", windowed("at night")), deploymentOf("open", windowed("0 16 * * * for 3h Europe/Berlin")), deploymentOf("web", rollOn("auto, secret/tls-*, sercet/typo")), deploymentOf("silent", nil),
		deploymentOf("none", rollOn("none")), done, old)
	told := deploymentOf("told", map[string]string{
		workload.AnnotationRollOn: "auto, configmap/app", workload.AnnotationReload: "http://:9090/-/reload",
	})
	told.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "told"}}
	if err := client.Tracker().Add(told); err != nil {
		t.Fatal(err)
	}
	mounting := deploymentOf("mounting", map[string]string{workload.AnnotationRollOn: "auto", workload.AnnotationReload: "http://:9090/-/reload"})
	mounting.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "mounting"}}
	mounting.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{Name: "app", VolumeMounts: []corev1.VolumeMount{{Name: "db"}}}},
		Volumes:    []corev1.Volume{{Name: "db", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}}},
	}
	now := mounting.DeepCopy()
	now.Name, now.UID, now.Annotations[workload.AnnotationRollNow] = "now", "uid-now", "1"
	onNode := mounting.DeepCopy()
	onNode.Name, onNode.UID, onNode.Spec.Template.Spec.HostNetwork = "on-node", "uid-on-node", true
	for _, d := range []*appsv1.Deployment{mounting, now, onNode} {
		if err := client.Tracker().Add(d); err != nil {
			t.Fatal(err)
		}
	}
	paused := deploymentOf("paused", rollOn("auto"))
	paused.Spec.Paused = true
	if err := client.Tracker().Add(paused); err != nil {
		t.Fatal(err)
	}
	options := ExplainOptions{Origins: events.Origins{Cluster: "demo"}, Clients: workload.Clients{Typed: client, Dynamic: customClient()}, Now: historyNow}
	options.Reading.InPlace, options.ReloadDelay = true, 2*time.Minute
	tests := []struct {
		name, workload string
		want           []string
		err            string
	}{
		{
			name: "of a workload that asks for something", workload: "deployment/web",
			want: []string{
				"deployment/web in namespace shop of cluster demo",
				`! keyturn.dev/roll-on: item "sercet/typo": unknown kind`,
				"It was never rolled.",
				"secret/db  all keys  keyturn.dev/roll-on: auto",
				"roll (content-changed): content that the pods read has changed",
			},
		},
		{
			name: "of one that was rolled", workload: "deployment/done",
			want: []string{
				"It was last rolled at 2026-03-14T15:09:26Z (0s ago) for secret/db: started (content-changed)",
				"2026-03-14T15:09:26Z (0s ago)  2026-03-14T15:09:26Z (0s ago)  skip (already-rolled): the workload was rolled for this change",
			},
		},
		{
			name: "of one whose last outcome has expired", workload: "deployment/old",
			want: []string{"It was rolled. Its outcome is no longer on the stream, which keeps it for 30 days at most."},
		},
		{
			name: "of one that is paused", workload: "deployment/paused",
			want: []string{"It is paused (spec.paused) by someone else. Keyturn does not change that, and its rollouts wait."},
		},
		{
			name: "of one whose pods reload in place, but not what they read as environment", workload: "deployment/told",
			want: []string{
				"Its pods are asked to reload at http://:9090/-/reload, instead of being replaced, 2m0s after a change, once their files are new.",
				"They are replaced where configmap/app is not mounted.\nThey are replaced where secret/db is read as environment.",
				"roll (content-changed): content that the pods read has changed; not in place: secret/db is read as environment",
			},
		},
		{
			name: "of one whose pods reload in place", workload: "deployment/mounting",
			want: []string{"reload (content-changed): content that the pods read has changed; at http://:9090/-/reload, 2m0s after the change"},
		},
		{
			name: "of one that is to be rolled instead", workload: "deployment/now",
			want: []string{"roll (content-changed): content that the pods read has changed; not in place: keyturn.dev/roll-now asks for a rollout"},
		},
		{
			name: "of one whose pods have the address of their node", workload: "deployment/on-node",
			want: []string{"roll (content-changed): content that the pods read has changed; not in place: the pods have the network of their node"},
		},
		{
			name: "of one that is on hold", workload: "deployment/held",
			want: []string{
				"It is on hold: tofu apply (on-hold). Its changes roll it once keyturn.dev/hold is removed, or once keyturn.dev/roll-now has another value.",
				"Pending: secret/db.\n\nSOURCE", "hold (on-hold), then roll (content-changed): content that the pods read has changed",
			},
		},
		{
			name: "of one that is on hold and to be rolled nevertheless", workload: "deployment/asked",
			want: []string{"It rolls for the next change whatever holds it: keyturn.dev/roll-now is set and has not been used."},
		},
		{
			name: "of one whose window is closed", workload: "deployment/nightly",
			want: []string{
				"No window is open: 0 1 * * * for 3h Europe/Berlin (window-closed). It is rolled from 2026-03-15T00:00:47Z (in 8h) on, or once keyturn.dev/roll-now has another value.",
			},
		},
		{
			name: "of one that was rolled recently", workload: "deployment/recent",
			want: []string{
				"It was rolled recently (rolled-recently): its next roll begins at 2026-03-14T15:19:26Z (in 10m) at the earliest, or once keyturn.dev/roll-now has another value.",
			},
		},
		{
			name: "of one that was rolled too often", workload: "deployment/often",
			want: []string{
				"It was rolled too often: 5 since 2026-03-14T15:09:26Z (rolled-too-often). Its next roll begins at 2026-03-14T16:09:26Z (in 60m) at the earliest, or once " +
					"keyturn.dev/roll-now has another value. Find what changes its sources or undoes its rollouts each time.",
			},
		},
		{name: "of one whose window is open", workload: "deployment/open", want: []string{"It was never rolled.\n\nPending: secret/db. Nothing is known to hold it"}},
		{
			name: "of one whose window is not valid", workload: "deployment/wrong",
			want: []string{
				`! keyturn.dev/window: "at night": want "<minute> <hour>`, "It is not rolled: keyturn.dev/window is not valid (window-closed). Fix that, or set keyturn.dev/roll-now.",
			},
		},
		{
			name: "of one that asks for nothing", workload: "deployment/silent",
			want: []string{"It asks for nothing: annotate it, for example with keyturn.dev/roll-on: auto"},
		},
		{
			name: "of one that asks to be left alone", workload: "deployment/none",
			want: []string{"It is not rolled: keyturn.dev/roll-on is none, which counts whatever else asks for it, such as --roll-all."},
		},
		{name: "but not of one that is not there", workload: "deployment/missing", err: "there is no deployment/missing in namespace shop"},
		{
			name: "nor of what is no workload", workload: "pod/web",
			err: `workload "pod/web": want <kind>/<name>, with a kind of deployment, statefulset, daemonset, cronjob, rollout, job`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			err := explainInShop(t, options, bus, test.workload, &out)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.err, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			for _, line := range test.want {
				if !strings.Contains(out.String(), line) {
					t.Errorf("it does not say %q:\n%s", line, &out)
				}
			}
		})
	}
}

func TestExplainSaysWhatTheNamespaceHolds(t *testing.T) {
	bus := natstest.Buses(t, "demo")[0]
	publish(t, bus, changeOfDB())
	client := fake.NewClientset(deploymentOf("web", rollOn("auto")), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{events.AnnotationHold: "moving"}},
	})
	forbidden := fake.NewClientset(deploymentOf("web", rollOn("auto")))
	forbidden.PrependReactor("*", "namespaces", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("namespaces"), "shop", nil)
	})
	for want, client := range map[string]*fake.Clientset{
		"It is on hold: namespace shop: moving (on-hold).": client, "Its namespace may not be read": forbidden,
	} {
		options := ExplainOptions{Origins: events.Origins{Cluster: "demo"}, Clients: workload.Clients{Typed: client, Dynamic: customClient()}, Now: historyNow}
		var out bytes.Buffer
		if err := explainInShop(t, options, bus, "deployment/web", &out); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q (%v):\n%s", want, err, &out)
		}
	}
}

func TestExplainSaysWhyASourceIsOnHold(t *testing.T) {
	bus := natstest.Buses(t, "demo")[0]
	held := changeOfDB()
	held.Hold = "migration"
	publish(t, bus, held)
	options := ExplainOptions{
		Origins: events.Origins{Cluster: "demo"},
		Clients: workload.Clients{Typed: fake.NewClientset(deploymentOf("web", rollOn("auto"))), Dynamic: customClient()},
	}
	var out bytes.Buffer
	if err := explainInShop(t, options, bus, "deployment/web", &out); err != nil {
		t.Fatal(err)
	}
	if want := "hold (source-on-hold): somebody has put the source on hold: migration"; !strings.Contains(out.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, &out)
	}
}

func TestExplainKnowsTheStoresThatAnotherClusterWatches(t *testing.T) {
	buses := natstest.Buses(t, "demo", "hub")
	publish(t, buses[1], events.Change{
		Cluster: "hub", Source: events.StorePath{Store: "bao", Namespace: events.RootNamespace, Mount: "secret", Path: "shop/db"}.Source(),
		Verb: events.VerbRotated, UID: "bao", ResourceVersion: "100", ChangedAt: "100", Fingerprint: fp("b"), Time: historyNow, WrittenAt: historyNow,
		Store: &events.StoreState{Engine: events.EngineKV, Version: 7, Revision: "7"},
	})
	const anyStore, thisStore, otherStore = "openbao:secret/shop/db", "openbao:bao:secret/shop/db", "openbao:dev:secret/shop/db"
	const known = "openbao/bao/root/secret/shop/db  by name only  keyturn.dev/roll-on: "
	for _, tt := range []struct {
		name, rollOn string
		from         []string
		want         string
	}{
		{"with the option it knows the path", anyStore, []string{"hub"}, known + anyStore + "  2026-03-14T15:09:26Z"},
		{"without it does not", anyStore, nil, "openbao/secret/shop/db"},
		{"it knows the path in the store that is named", thisStore, []string{"hub"}, known + thisStore + "  2026-03-14T15:09:26Z"},
		{"it knows nothing of another store", otherStore, []string{"hub"}, "openbao/secret/shop/db"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := fake.NewClientset(deploymentOf("web", rollOn(tt.rollOn)))
			options := ExplainOptions{
				Origins: events.Origins{Cluster: "demo", StoresFrom: tt.from}, Clients: workload.Clients{Typed: client, Dynamic: customClient()},
			}
			options.Reading.Stores.Grants = []workload.StoreGrant{{Namespaces: []string{"shop"}, Store: "*", Paths: []string{"secret/shop"}}}
			var out bytes.Buffer
			if err := explainInShop(t, options, buses[0], "deployment/web", &out); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), tt.want) {
				t.Errorf("got %s\nwant %q in it", &out, tt.want)
			}
		})
	}
}

func TestEveryReasonIsExplainedByItsWordAndItsSentence(t *testing.T) {
	for _, reason := range plan.Reasons() {
		var e explanation
		e.decide(plan.Decision{Reason: reason})
		if want := reason.Action().String() + " (" + reason.String() + "): " + reason.Sentence(); e.text() != want {
			t.Errorf("%s: got %q, want %q", reason, e.text(), want)
		}
	}
}

func TestExplainSaysWhyTheLastRolloutFailed(t *testing.T) {
	bus := natstest.Buses(t, "demo")[0]
	failed := events.Outcome{
		Cluster: "demo", Verb: events.VerbFailed, Reason: "reverted", Message: "the field manager \"operator\" restored it", Time: historyNow,
		StartedAt: historyNow, Cause: "uid/100", Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: "web", UID: "uid-web"},
		ResourceVersion: "51", Revision: "r", Sources: []events.OutcomeSource{{Source: "secret/db"}},
	}
	publishOutcomes(t, bus, failed)
	options := ExplainOptions{
		Origins: events.Origins{Cluster: "demo"}, Clients: workload.Clients{
			Typed: fake.NewClientset(deploymentOf("web", rollOn("auto"))), Dynamic: customClient(),
		},
	}
	var out bytes.Buffer
	if err := explainInShop(t, options, bus, "deployment/web", &out); err != nil {
		t.Fatal(err)
	}
	const want = "It was last rolled at 2026-03-14T15:09:26Z for secret/db: failed (reverted): the field manager \"operator\" restored it\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, &out)
	}
}

func TestExplainSaysWhomAHeldWorkloadWaitsFor(t *testing.T) {
	bus := natstest.Buses(t, "demo")[0]
	publish(t, bus, changeOfDB())
	outcome := func(verb events.Verb, reason, message string) events.Outcome {
		return events.Outcome{
			Cluster: "demo", Verb: verb, Reason: reason, Message: message, Time: historyNow, Cause: "uid/100",
			Workload:        events.Workload{Kind: "deployment", Namespace: "shop", Name: "web", UID: "uid-web"},
			ResourceVersion: "51", Sources: []events.OutcomeSource{{Source: "secret/db"}},
		}
	}
	// This ends a rollout that began before the workload was held.
	earlier := func(o events.Outcome) events.Outcome {
		o.StartedAt, o.Revision, o.Cause = historyNow.Add(-time.Minute), "r", "uid/90"
		return o
	}
	options := ExplainOptions{
		Origins: events.Origins{Cluster: "demo"}, Clients: workload.Clients{
			Typed: fake.NewClientset(deploymentOf("web", rollOn("auto"))), Dynamic: customClient(),
		},
	}
	const want = "It has been held since 2026-03-14T15:09:26Z: it waits: deployment/api (lower-wave)"
	for _, tt := range []struct {
		outcome events.Outcome
		held    bool
	}{
		{outcome(events.VerbHeld, "lower-wave", "it waits: deployment/api"), true},
		{earlier(outcome(events.VerbCompleted, "rolled-out", "")), true},
		{outcome(events.VerbSkipped, "same-content", "it has it"), false},
	} {
		publishOutcomes(t, bus, tt.outcome)
		var out bytes.Buffer
		if err := explainInShop(t, options, bus, "deployment/web", &out); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), want); got != tt.held {
			t.Errorf("after %s it says that it is held: %t\n%s", tt.outcome.Verb, got, &out)
		}
	}
}

// cronJobOf returns a CronJob that reads the Secret db.
func cronJobOf(name string, suspended bool) *batchv1.CronJob {
	web := deploymentOf(name, rollOn("auto"))
	cronJob := &batchv1.CronJob{ObjectMeta: web.ObjectMeta, Spec: batchv1.CronJobSpec{Suspend: &suspended}}
	cronJob.Spec.JobTemplate.Spec.Template = web.Spec.Template
	return cronJob
}

// jobOf returns a Job that reads the Secret db.
func jobOf(name string, owners ...metav1.OwnerReference) *batchv1.Job {
	web := deploymentOf(name, rollOn("auto"))
	job := &batchv1.Job{ObjectMeta: web.ObjectMeta, Spec: batchv1.JobSpec{Template: web.Spec.Template}}
	job.OwnerReferences = owners
	return job
}

func TestExplainAnswersForTheKindsOfTheActuator(t *testing.T) {
	bus := natstest.Buses(t, "demo")[0]
	publish(t, bus, changeOfDB())
	publishOutcomes(t, bus, events.Outcome{
		Cluster: "demo", Verb: events.VerbCompleted, Reason: "rolled-out", Time: historyNow, StartedAt: historyNow, Cause: "uid/100",
		Workload: events.Workload{Kind: "cronjob", Namespace: "shop", Name: "started", UID: "uid-started"}, ResourceVersion: "50", Revision: "r",
		Sources: []events.OutcomeSource{{Source: "secret/db", Fingerprint: fp("b"), ResourceVersion: "100", Event: "uid/100"}},
	})
	client := fake.NewClientset(cronJobOf("asleep", true), cronJobOf("started", false), jobOf("import"),
		jobOf("nightly", metav1.OwnerReference{APIVersion: "batch/v1", Kind: "CronJob", Name: "asleep", UID: "o", Controller: new(true)}))
	starting := workload.BuiltIn().With(workload.StartedCronJob())
	const rolls = "roll (content-changed): content that the pods read has changed"
	tests := []struct {
		name, workload string
		kinds          workload.Kinds
		want           string
	}{
		{"a suspended CronJob whose template is changed", "cronjob/asleep", workload.BuiltIn(), rolls},
		{"a suspended CronJob of which Jobs are started", "cronjob/asleep", starting, "record (suspended): the workload is suspended"},
		{"a Job that was started and could not be recorded", "cronjob/started", starting, "skip (already-rolled): the workload was rolled for this change"},
		{"a Job", "job/import", append(workload.BuiltIn(), workload.Job()), rolls},
		{"a Job where they are not made anew", "job/import", workload.BuiltIn(), "It is not rolled: an actuator with these flags leaves workloads of the kind job"},
		{"a Job of a CronJob", "job/nightly", append(workload.BuiltIn(), workload.Job()), "It is left alone, whatever it asks for"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			options := ExplainOptions{Origins: events.Origins{Cluster: "demo"}, Clients: workload.Clients{Typed: client}, Kinds: test.kinds}
			explainSays(t, options, bus, test.workload, test.want)
		})
	}
}

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
