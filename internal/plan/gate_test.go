package plan

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTheGateOfAWorkloadHasTheFirstOfTheReasonsThatPeopleChose(t *testing.T) {
	const (
		hold   = events.AnnotationHold
		now    = workload.AnnotationRollNow
		window = workload.AnnotationWindow
		least  = workload.AnnotationMinInterval
		rolled = "keyturn.dev/rolled-at"
		most   = workload.AnnotationMaxRollsPerHour
		rolls  = "keyturn.dev/rolls"
		pause  = "deployment.reloader.stakater.com/pause-period"
		paused = "deployment.reloader.stakater.com/paused-at"
	)
	at := func(clock string) time.Time {
		read, err := time.Parse(time.DateTime, "2026-03-14 "+clock)
		testkit.Must(t, err)
		return read
	}
	tests := []struct {
		name  string
		on    map[string]string
		state func(*workload.Workload)
		since time.Time
		want  Gate
		// opens says that the gate ends at the workload's own moment in the next window.
		opens bool
	}{
		{name: "it is on hold", on: map[string]string{hold: "tofu apply"}, want: Gate{Reason: OnHold, Said: "tofu apply"}},
		{name: "it is to roll whatever holds it", on: map[string]string{hold: "tofu apply", now: "1"}},
		{
			name: "its window is not valid", on: map[string]string{window: "at night"},
			want: Gate{Reason: WindowClosed, Said: workload.AnnotationWindow + " is not valid"},
		},
		{
			name: "its window is closed, which comes before the interval",
			on:   map[string]string{window: "0 16 * * * for 3h", least: "1h", rolled: "2026-03-14T15:00:00Z"},
			want: Gate{Reason: WindowClosed, Said: "0 16 * * * for 3h"}, opens: true,
		},
		{
			name: "it was rolled recently, which comes before its own moment in the window",
			on:   map[string]string{window: "9 15 * * * for 3h", least: "1h", rolled: "2026-03-14T15:00:00Z"},
			want: Gate{Reason: RolledRecently, End: at("16:00:00")},
		},
		{
			name: "it was rolled too often", on: map[string]string{most: "2", rolls: "2 since 2026-03-14T15:00:00Z", pause: "30s"}, since: written,
			want: Gate{Reason: RolledTooOften, Said: "2 since 2026-03-14T15:00:00Z", End: at("16:00:00")},
		},
		{name: "its pause begins", on: map[string]string{pause: "30s"}, since: written, want: Gate{Reason: Pausing, End: at("15:09:56"), Begins: true}},
		{
			name: "no pause begins while someone has paused the Deployment itself", on: map[string]string{pause: "30s"}, since: written,
			state: func(w *workload.Workload) { w.Progress.State = workload.Waiting },
		},
		{
			name: "its pause has begun, and no change is known", on: map[string]string{pause: "30s", paused: "2026-03-14T15:09:00Z"},
			want: Gate{Reason: Pausing, End: at("15:09:30")},
		},
		{
			name: "its window is open, and its own moment has not come", on: map[string]string{window: "9 15 * * * for 3h"},
			want: Gate{Reason: WindowClosed, Said: "9 15 * * * for 3h", Soon: true}, opens: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := webWith(t, tt.on, workload.Reading{Reloader: true})
			if tt.state != nil {
				tt.state(w)
			}
			got := GateOf(w, tt.since, written)
			if tt.opens {
				tt.want.End, _ = w.Opening(written)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// mountsDB is a Deployment that reads db as files, with more of its annotations.
func mountsDB(t *testing.T, annotations map[string]string, mutate func(*workload.Workload)) *workload.Workload {
	t.Helper()
	on := map[string]string{workload.AnnotationRollOn: "auto, configmap/app", workload.AnnotationReload: "http://:9090/-/reload"}
	maps.Copy(on, annotations)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "w", ResourceVersion: "50", Annotations: on}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	deployment.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{Name: "app", VolumeMounts: []corev1.VolumeMount{{Name: "db"}}}},
		Volumes:    []corev1.Volume{{Name: "db", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}}},
	}
	w, ok := workload.Read(deployments, deployment, workload.Reading{InPlace: true})
	if !ok || w.InPlace == nil {
		t.Fatalf("it does not reload in place: %v", w.Problems)
	}
	w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "90", UID: "uid"}}
	if mutate != nil {
		mutate(w)
	}
	return w
}

func TestPodsAreToldInPlaceIfAllThatChangedIsInTheirFiles(t *testing.T) {
	tests := []struct {
		name        string
		annotations map[string]string
		state       func(*workload.Workload)
		change      func(*events.Change)
		other       bool // configmap/app, which is not mounted, has changed, too
		want        string
	}{
		{name: "what is mounted has changed"},
		{name: "so has what is not mounted", other: true, want: "configmap/app is not mounted"},
		{name: "it is another object", change: func(c *events.Change) { c.UID = "another" }, want: "secret/db is another object than before"},
		{
			name: "it is there for the first time", state: func(w *workload.Workload) { w.Rolled, w.Refs[0].Optional = nil, true },
			change: func(c *events.Change) { c.Created, c.CreatedAt, c.Previous = true, "100", "" }, want: "secret/db: " + Appeared.Sentence(),
		},
		{
			name: "somebody asks for a roll", annotations: map[string]string{workload.AnnotationRollNow: "1"},
			want: "keyturn.dev/roll-now asks for a rollout",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := mountsDB(t, tt.annotations, tt.state)
			policy := Policy{Delete: true}
			doing := []Decision{Decide(w, changeOf(tt.change), justCame, policy)}
			if tt.other {
				doing = append(doing, Decide(w, changeOf(func(c *events.Change) {
					c.Source = events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "app"}
				}), justCame, policy))
			}
			why, ok := InPlace(w, doing)
			if why != tt.want || ok != (tt.want == "") {
				t.Errorf("got %t, %q, want %q; the decisions are %v", ok, why, tt.want, doing)
			}
		})
	}
}

func TestPodsOfARolloutInProgressAreReplacedWithWhatTheyWaitedFor(t *testing.T) {
	w := mountsDB(t, nil, func(w *workload.Workload) { w.Progress = workload.Progress{State: workload.Progressing, Pods: 3} })
	doing := []Decision{{Source: db, Reason: Changed}, {Reason: PodsNewer}}
	if why, ok := InPlace(w, doing); ok || why != "a change of the workload itself is replacing its pods" {
		t.Errorf("got %t, %q", ok, why)
	}
}

func TestPodsAreReplacedIfASourceOnHoldCountsAsReadByNewOnes(t *testing.T) {
	app := events.Source{Kind: events.KindConfigMap, Namespace: "shop", Name: "app"}
	doing := []Decision{{Source: db, Reason: Changed}, {Source: app, Reason: PodsNewer, Hold: "migration"}}
	if why, ok := InPlace(mountsDB(t, nil, nil), doing); ok || why != "configmap/app is on hold, and only new pods read it now" {
		t.Errorf("got %t, %q", ok, why)
	}
}
