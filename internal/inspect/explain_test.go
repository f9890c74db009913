package inspect

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

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

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// fp returns a fingerprint that differs with the letter.
func fp(letter string) string { return "k0a1b2c3d:" + strings.Repeat("0", 31) + letter }

func publish(t *testing.T, b *bus.Bus, change events.Change) {
	t.Helper()
	natstest.Publish(t, func() error {
		_, err := b.PublishChange(t.Context(), change, 0)
		return err
	})
}

// optionsFor are options for an API server with some objects of its own kinds, and without Rollouts.
func optionsFor(objects ...runtime.Object) ExplainOptions {
	return ExplainOptions{
		Origins: events.Origins{Cluster: "demo"}, Kinds: append(workload.BuiltIn(), workload.ArgoRollout()), Now: historyNow,
		Clients: workload.Clients{Typed: fake.NewClientset(objects...), Dynamic: customClient()},
	}
}

// explainInShop writes the explanation of a workload in the namespace shop.
func explainInShop(t *testing.T, options ExplainOptions, b *bus.Bus, name string, out *bytes.Buffer) error {
	t.Helper()
	report, err := reportOf(t, options, b, name)
	if err != nil {
		return err
	}
	return report.Write(out, Wide)
}

// reportOf is Explain for a workload in the namespace shop. It asks again while the stream does not answer.
func reportOf(t *testing.T, options ExplainOptions, b *bus.Bus, name string) (report *Report, err error) {
	t.Helper()
	err = natstest.Answered(t, func() error {
		report, err = Explain(t.Context(), options, &b.Reader, name, "shop")
		return err
	})
	return report, err
}

// explainSays returns the explanation of a workload in the namespace shop, and checks that it contains each text.
func explainSays(t *testing.T, options ExplainOptions, b *bus.Bus, name string, texts ...string) string {
	t.Helper()
	var out bytes.Buffer
	testkit.Must(t, explainInShop(t, options, b, name, &out))
	for _, want := range texts {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
	return out.String()
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
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	publishOutcomes(t, b, rolled(outcomeOf("done", events.VerbStarted, "content-changed", "", historyNow)))
	const (
		changed, reload = "content-changed): content that the pods read has changed", "http://:9090/-/reload"
		orNow           = "or once keyturn.dev/roll-now has another value."
	)
	mounting := func(d *appsv1.Deployment) {
		d.Annotations[workload.AnnotationReload] = reload
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		d.Spec.Template.Spec = corev1.PodSpec{
			Containers: []corev1.Container{{Name: "app", VolumeMounts: []corev1.VolumeMount{{Name: "db"}}}},
			Volumes:    []corev1.Volume{{Name: "db", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}}},
		}
	}
	for _, test := range []struct {
		name string
		// on are annotations beside roll-on: auto.
		on    map[string]string
		alter func(*appsv1.Deployment)
		want  []string
	}{
		{
			name: "that asks for something", on: rollOn("auto, secret/tls-*, sercet/typo"),
			want: []string{
				"deployment/web in namespace shop of cluster demo", `! keyturn.dev/roll-on: item "sercet/typo": unknown kind`, "It was never rolled.",
				"secret/db  all keys  keyturn.dev/roll-on: auto", "roll (" + changed,
			},
		},
		{
			name: "that was rolled", on: map[string]string{"keyturn.dev/rolled": `{"secret/db":"` + fp("b") + `@100/uid"}`},
			alter: func(d *appsv1.Deployment) { d.Name, d.UID = "done", "uid-done" },
			want: []string{
				"It was last rolled at 2026-03-14T15:09:26Z (0s ago) for secret/db: started (content-changed)",
				"2026-03-14T15:09:26Z (0s ago)  2026-03-14T15:09:26Z (0s ago)  skip (up-to-date): the workload was rolled for this change, or for a later one",
			},
		},
		{
			name: "whose last outcome has expired",
			alter: func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations = map[string]string{"keyturn.dev/revision": "r"}
			},
			want: []string{"It was rolled. Its outcome is no longer on the stream, which keeps it for 30 days at most."},
		},
		{
			name: "that is paused", alter: func(d *appsv1.Deployment) { d.Spec.Paused = true },
			want: []string{"It is paused (spec.paused) by someone else. Keyturn does not change that, and its rollouts wait."},
		},
		{
			name: "whose pods reload in place, but not what they read as environment", on: map[string]string{
				workload.AnnotationRollOn: "auto, configmap/app", workload.AnnotationReload: reload,
			},
			alter: func(d *appsv1.Deployment) {
				d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			},
			want: []string{
				"Its pods are asked to reload at " + reload + ", instead of being replaced, 2m0s after a change, once their files are new.",
				"They are replaced where configmap/app is not mounted.\nThey are replaced where secret/db is read as environment.",
				"roll (" + changed + "; not in place: secret/db is read as environment",
			},
		},
		{name: "whose pods reload in place", alter: mounting, want: []string{"reload (" + changed + "; at " + reload + ", 2m0s after the change"}},
		{
			name: "that is to be rolled instead", on: map[string]string{workload.AnnotationRollNow: "1"}, alter: mounting,
			want: []string{"roll (" + changed + "; not in place: keyturn.dev/roll-now asks for a rollout"},
		},
		{
			name: "that is on hold", on: map[string]string{events.AnnotationHold: "tofu apply"},
			want: []string{
				"It is on hold: tofu apply (on-hold). Its changes roll it once keyturn.dev/hold is removed, " + orNow,
				"Pending: secret/db.\n\nSOURCE", "hold (on-hold), then roll (" + changed,
			},
		},
		{
			name: "that is on hold and to be rolled nevertheless", on: map[string]string{events.AnnotationHold: "tofu apply", workload.AnnotationRollNow: "1"},
			want: []string{"It rolls for the next change whatever holds it: keyturn.dev/roll-now is set and has not been used."},
		},
		{
			name: "whose window is closed", on: map[string]string{workload.AnnotationWindow: "0 1 * * * for 3h Europe/Berlin"},
			alter: func(d *appsv1.Deployment) { d.Name, d.UID = "nightly", "uid-nightly" },
			want:  []string{"No window is open: 0 1 * * * for 3h Europe/Berlin (window-closed). It is rolled from 2026-03-15T00:00:47Z (in 8h) on, " + orNow},
		},
		{
			name: "whose window is open", on: map[string]string{workload.AnnotationWindow: "0 16 * * * for 3h Europe/Berlin"},
			alter: func(d *appsv1.Deployment) { d.Name, d.UID = "open", "uid-open" },
			want:  []string{"It was never rolled.\n\nPending: secret/db. Nothing is known to hold it"},
		},
		{
			name: "whose window is not valid", on: map[string]string{workload.AnnotationWindow: "at night"},
			want: []string{
				`! keyturn.dev/window: "at night": want "<minute> <hour>`, "It is not rolled: keyturn.dev/window is not valid (window-closed). Fix that, or set keyturn.dev/roll-now.",
			},
		},
		{
			name: "that was rolled recently", on: map[string]string{workload.AnnotationMinInterval: "10m", "keyturn.dev/rolled-at": historyNow.Format(time.RFC3339)},
			want: []string{"It was rolled recently (rolled-recently): its next roll begins at 2026-03-14T15:19:26Z (in 10m) at the earliest, " + orNow},
		},
		{
			name: "that was rolled too often",
			on:   map[string]string{workload.AnnotationMaxRollsPerHour: "5", "keyturn.dev/rolls": "5 since " + historyNow.Format(time.RFC3339)},
			want: []string{
				"It was rolled too often: 5 since 2026-03-14T15:09:26Z (rolled-too-often). Its next roll begins at 2026-03-14T16:09:26Z (in 60m) at the earliest, " +
					orNow + " Find what changes its sources or undoes its rollouts each time.",
			},
		},
		{
			name: "that changes without end", on: map[string]string{
				"keyturn.dev/rolls": "13 since " + historyNow.Format(time.RFC3339) + ` {"secret/db#password":"12 at ` + historyNow.Format(time.RFC3339) + `"}`,
			},
			want: []string{
				"It changes without end, and is rolled ever more seldom (rolled-too-often): secret/db (password). " +
					"Its next roll for that begins at 2026-03-14T15:19:26Z (in 10m) at the earliest, " + orNow,
				"Pending: secret/db.\n\nSOURCE", "hold (rolled-too-often), then roll (" + changed,
			},
		},
		{
			name: "that asks for nothing", alter: func(d *appsv1.Deployment) { d.Annotations = nil },
			want: []string{"It asks for nothing: annotate it, for example with keyturn.dev/roll-on: auto"},
		},
		{
			name: "that asks to be left alone", on: rollOn("none"),
			want: []string{"It is not rolled: keyturn.dev/roll-on is none, which counts whatever else asks for it, such as --roll-all."},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			web := deploymentOf("web", rollOn("auto"))
			maps.Copy(web.Annotations, test.on)
			if test.alter != nil {
				test.alter(web)
			}
			options := optionsFor(web)
			options.Reading.InPlace, options.ReloadDelay, options.Reading.MaxRollsPerHour = true, 2*time.Minute, 30
			explainSays(t, options, b, "deployment/"+web.Name, test.want...)
		})
	}
	for name, want := range map[string]string{
		"deployment/missing": "there is no deployment/missing in namespace shop",
		"pod/web":            `workload "pod/web": want <kind>/<name>, with a kind of deployment, statefulset, daemonset, cronjob, rollout, job`,
	} {
		testkit.WantError(t, explainInShop(t, optionsFor(), b, name, &bytes.Buffer{}), want)
	}
}

func TestExplainSaysWhatTheNamespaceHolds(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	web := deploymentOf("web", rollOn("auto"))
	explainSays(t, optionsFor(web, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{events.AnnotationHold: "moving"}},
	}), b, "deployment/web", "It is on hold: namespace shop: moving (on-hold).")
	forbidden := fake.NewClientset(web)
	forbidden.PrependReactor("*", "namespaces", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("namespaces"), "shop", nil)
	})
	options := optionsFor()
	options.Clients.Typed = forbidden
	explainSays(t, options, b, "deployment/web", "Its namespace may not be read")
}

func TestExplainSaysOfWhichSourcesTheStreamHasNoEvent(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	web := deploymentOf("web", rollOn("auto, secret/license"))
	from := func(name string, isOptional bool) corev1.EnvFromSource {
		return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: &isOptional,
		}}
	}
	app := &web.Spec.Template.Spec.Containers[0]
	app.EnvFrom = append(app.EnvFrom, from("big", false), from("extra", true))
	explainSays(t, optionsFor(web), b, "deployment/web",
		"The stream has no event of configmap/big, which the pods need. If it exists, no change of it rolls anything until the watcher publishes it",
		"skip (unknown): the stream has no event of the source: it does not exist, or the watcher leaves it out or cannot publish it")
}

func TestExplainSaysWhyASourceIsOnHold(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	held := changeOfDB()
	held.Hold = "migration"
	publish(t, b, held)
	explainSays(t, optionsFor(deploymentOf("web", rollOn("auto"))), b, "deployment/web",
		"hold (on-hold): somebody has put the source on hold: migration")
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
			options := optionsFor(deploymentOf("web", rollOn(tt.rollOn)))
			options.Origins.StoresFrom = tt.from
			options.Reading.Stores.Grants = []workload.StoreGrant{{Namespaces: []string{"shop"}, Store: "*", Paths: []string{"secret/shop"}}}
			explainSays(t, options, buses[0], "deployment/web", tt.want)
		})
	}
}

func TestExplainKnowsWhatTheActuatorLeavesAlone(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	for _, tt := range []struct {
		name  string
		alter func(*ExplainOptions)
		want  string
		rows  bool
	}{
		{"another namespace", func(o *ExplainOptions) { o.Namespaces = []string{"bank"} }, "leaves workloads of the namespace shop alone", false},
		{"an ignored namespace", func(o *ExplainOptions) { o.IgnoreNamespaces = []string{"shop"} }, "leaves workloads of the namespace shop alone", false},
		{"its own", func(o *ExplainOptions) { o.Namespaces = []string{"bank", "shop"} }, "Pending: secret/db.", true},
		{"a webhook", func(o *ExplainOptions) { o.Posts = true }, "an actuator with a webhook-url in --reloader posts to that instead", false},
		{"a dry run", func(o *ExplainOptions) { o.DryRun = true }, "it decides what follows, and patches nothing", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options := optionsFor(deploymentOf("web", rollOn("auto")))
			tt.alter(&options)
			if got := explainSays(t, options, b, "deployment/web", tt.want); strings.Contains(got, "LAST ROLLED FOR") != tt.rows {
				t.Errorf("got\n%s, want rows: %t", got, tt.rows)
			}
		})
	}
}

func TestExplainAnswersForTheKindsOfTheActuator(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	completed := rolled(outcomeOf("started", events.VerbCompleted, "rolled-out", "", historyNow))
	completed.Workload.Kind, completed.ResourceVersion = "cronjob", "50"
	completed.Sources = []events.OutcomeSource{{Source: "secret/db", Fingerprint: fp("b"), ResourceVersion: "100", Event: "uid/100"}}
	publishOutcomes(t, b, completed)
	cronJobOf := func(name string, suspended bool) *batchv1.CronJob {
		web := deploymentOf(name, rollOn("auto"))
		cronJob := &batchv1.CronJob{ObjectMeta: web.ObjectMeta, Spec: batchv1.CronJobSpec{Suspend: &suspended}}
		cronJob.Spec.JobTemplate.Spec.Template = web.Spec.Template
		return cronJob
	}
	jobOf := func(name string, owners ...metav1.OwnerReference) *batchv1.Job {
		web := deploymentOf(name, rollOn("auto"))
		web.OwnerReferences = owners
		return &batchv1.Job{ObjectMeta: web.ObjectMeta, Spec: batchv1.JobSpec{Template: web.Spec.Template}}
	}
	options := optionsFor(cronJobOf("asleep", true), cronJobOf("started", false), jobOf("import"),
		jobOf("nightly", metav1.OwnerReference{APIVersion: "batch/v1", Kind: "CronJob", Name: "asleep", UID: "o", Controller: new(true)}))
	starting := workload.BuiltIn().With(workload.StartedCronJob())
	const rolls = "roll (content-changed): content that the pods read has changed"
	for _, test := range []struct {
		name, workload string
		kinds          workload.Kinds
		want           string
	}{
		{"a suspended CronJob whose template is changed", "cronjob/asleep", workload.BuiltIn(), rolls},
		{"a suspended CronJob of which Jobs are started", "cronjob/asleep", starting, "record (suspended): the workload is suspended"},
		{"a Job that was started and could not be recorded", "cronjob/started", starting, "skip (up-to-date): the workload was rolled for this change, or for a later one"},
		{"a Job", "job/import", append(workload.BuiltIn(), workload.Job()), rolls},
		{"a Job where they are not made anew", "job/import", workload.BuiltIn(), "It is not rolled: an actuator with these flags leaves workloads of the kind job"},
		{"a Job of a CronJob", "job/nightly", append(workload.BuiltIn(), workload.Job()), "It is left alone, whatever it asks for"},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := options
			options.Kinds = test.kinds
			explainSays(t, options, b, test.workload, test.want)
		})
	}
}

func TestExplainSaysThatARolloutWaitsForSomeone(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	of := deploymentOf("web", map[string]string{workload.AnnotationRollOn: "auto", "keyturn.dev/rolled": `{"secret/db":"` + fp("b") + `@100/uid"}`})
	daemons := &appsv1.DaemonSet{
		ObjectMeta: of.ObjectMeta, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2},
		Spec: appsv1.DaemonSetSpec{
			Template: of.Spec.Template, UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
		},
	}
	paused := rolloutOf("web", map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}}})
	paused.Object["status"] = map[string]any{"observedGeneration": "1", "phase": "Paused", "message": "CanaryPauseStep"}
	options := optionsFor(daemons)
	options.Clients.Dynamic = dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), paused)
	const keep = " Pods that are not replaced yet keep what they have read.\n"
	explainSays(t, options, b, "daemonset/web",
		"Its rollout waits: the update strategy is OnDelete: a pod is replaced when it is deleted."+keep, "Nothing is pending.\n")
	explainSays(t, options, b, "rollout/web", "Its rollout waits: the Rollout is paused: CanaryPauseStep."+keep)
}

func TestExplainTellsAWindowThatIsOpenFromOneThatIsClosed(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	opened := historyNow.Truncate(time.Minute).Add(time.Second)
	publish(t, b, changeOfDB())
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
			options := optionsFor(deploymentOf("web", annotations))
			options.Now = opened
			explainSays(t, options, b, "deployment/web", tt.want)
		})
	}
}
