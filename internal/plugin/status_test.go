package plugin

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/inspect"
	"github.com/keyturn/keyturn/tests/testkit"
)

var now = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

func TestStatusFitsATerminal(t *testing.T) {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	s := status{
		now: now, Installation: "keyturn-system", Leader: &leader{Pod: "keyturn-actuator-0", Renewed: ago(2 * time.Second)},
		Programs: []program{{"keyturn-actuator", 1, 1, "v0.1.0"}, {"keyturn-watcher", 0, 1, "v0.1.0"}},
		Status: inspect.Status{
			Cluster: "prod", Since: ago(24 * time.Hour), Changes: 14, Completed: 9, Failures: 1, LastChange: ago(2 * time.Minute),
			Streams: []bus.Usage{{Stream: "HISTORY", Messages: 1204, Bytes: 3 << 20, Limit: 512 << 20}, {Stream: "DEADLETTERS", Messages: 2, Bytes: 4096}}, DeadLetters: 1,
			Waiting: []inspect.WorkloadStatus{{
				Workload: "deployment/web", Namespace: "shop", Reason: "lower-wave", Time: ago(5 * time.Minute),
				Message: "workloads of a lower wave are not finished with the same change: deployment/api",
			}},
		},
	}
	for i := range 12 {
		s.Failed = append(s.Failed, inspect.WorkloadStatus{Workload: "job/import", Namespace: "shop", Reason: "no-progress", Time: ago(time.Duration(20-i) * time.Minute)})
	}
	want := `Cluster prod, installation in namespace keyturn-system

PROGRAM           READY  VERSION
keyturn-actuator  1/1    v0.1.0
keyturn-watcher   0/1    v0.1.0

keyturn-actuator-0 leads.
Last change: 2m ago. In the last 24h: 14 changes, 9 rollouts completed, 1 failed.

STREAM       MESSAGES  SIZE     LIMIT
HISTORY      1204      3.0 MiB  512.0 MiB
DEADLETTERS  2         0.0 MiB  -

In the last 24h there were dead letters: see kubectl keyturn dead-letters.

WAITING         NAMESPACE  FOR  REASON
deployment/web  shop       5m   lower-wave: workloads of a lower wave are not finished with the sam…

FAILED      NAMESPACE  FOR  REASON
` + failedRows(18, 9) + "and 2 before\n"
	var out bytes.Buffer
	testkit.Must(t, s.write(&out, "table"))
	testkit.WantEqual(t, "status", want, out.String())
	for line := range strings.Lines(out.String()) {
		if width := len([]rune(strings.TrimRight(line, "\n"))); width > 100 {
			t.Errorf("a line has %d columns: %s", width, line)
		}
	}
	for format, want := range map[inspect.Format]string{inspect.JSON: `"cluster": "prod"`, inspect.YAML: "cluster: prod", inspect.Wide: "not finished with the same change: deployment/api"} {
		out.Reset()
		if err := s.write(&out, format); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("as %s (%v):\n%s", format, err, &out)
		}
	}
}

// failedRows returns the rows of jobs that failed the given numbers of minutes ago.
func failedRows(first, last int) string {
	var rows strings.Builder
	for minutes := first; minutes >= last; minutes-- {
		fmt.Fprintf(&rows, "job/import  shop       %-3s  no-progress\n", fmt.Sprintf("%dm", minutes))
	}
	return rows.String()
}

func TestStatusSaysWhichActuatorLeads(t *testing.T) {
	lease := func(holder string, renewed time.Time) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "keyturn-system", Name: "keyturn-actuator"},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: new(int32(15))},
		}
	}
	for _, tt := range []struct {
		name    string
		objects []runtime.Object
		refused bool
		set     map[string]string
		want    *leader
		err     string
	}{
		{name: "nobody, where all do, whatever Lease is left", set: map[string]string{"KEYTURN_LEADER_ELECT": "false"}, objects: []runtime.Object{lease("a-0", now)}},
		{name: "nobody, where all do, without the right to know", set: map[string]string{"KEYTURN_RELOADER": "on,webhook-url=https://example.com/hook"}, refused: true},
		{name: "who has renewed the Lease", objects: []runtime.Object{lease("a-0", now.Add(-time.Second))}, want: &leader{Pod: "a-0", Renewed: now.Add(-time.Second)}},
		{name: "nobody, if a dry run follows an actuator that rolled", set: map[string]string{"KEYTURN_DRY_RUN": "true"}, objects: []runtime.Object{lease("a-0", now)}},
		{name: "who no longer renews it", objects: []runtime.Object{lease("a-0", now.Add(-time.Hour))}, want: &leader{Pod: "a-0", Renewed: now.Add(-time.Hour), Lost: true}},
		{name: "without the right to know", refused: true, err: "no permission to get leases.coordination.k8s.io/keyturn-actuator in namespace keyturn-system:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := fake.NewClientset(tt.objects...)
			client.PrependReactor("get", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
				return tt.refused, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", nil)
			})
			got, err := (&installation{
				client: client, namespace: "keyturn-system", settings: tt.set, container: &corev1.Container{},
			}).leader(t.Context(), now)
			wantErrorWith(t, err, tt.err)
			testkit.WantEqual(t, "leader", tt.want, got)
		})
	}
}

func TestStatusSaysWhetherThereIsAnElectionOrADryRun(t *testing.T) {
	const noElection, noLeader = "No election: every actuator acts.", "No actuator leads."
	const dry, nothing = "Dry run: no workload is rolled.", "Nothing waits, is being rolled, or has failed."
	for _, tt := range []struct {
		name      string
		set       map[string]string
		want, not []string
	}{
		{"neither", nil, []string{noLeader, nothing}, []string{noElection, dry}},
		{"no election, in another form", map[string]string{"KEYTURN_LEADER_ELECT": "0"}, []string{noElection}, []string{noLeader}},
		{"an election, as it is set", map[string]string{"KEYTURN_LEADER_ELECT": "true", "KEYTURN_RELOADER": "on"}, []string{noLeader}, []string{noElection}},
		{"a dry run, in another form", map[string]string{"KEYTURN_DRY_RUN": "1"}, []string{dry}, []string{nothing}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := &installation{settings: tt.set, container: &corev1.Container{}}
			s := status{now: now, DryRun: i.isDry(), unelected: !i.elects(), Programs: []program{{"keyturn-actuator", 1, 1, "v0.1.0"}}}
			var out bytes.Buffer
			testkit.Must(t, s.write(&out, inspect.Table))
			for _, want := range tt.want {
				if !strings.Contains(out.String(), "\n"+want+"\n") {
					t.Errorf("got %q, want %q in it", &out, want)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(out.String(), not) {
					t.Errorf("got %q, want no %q", &out, not)
				}
			}
		})
	}
}

func TestProgramsAreListedWithTheirVersions(t *testing.T) {
	deployment := func(name, image string, ready int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "keyturn-system", Name: name, Labels: map[string]string{"app.kubernetes.io/part-of": "keyturn"}},
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "mesh", Image: "mesh:v9"}, {Name: strings.TrimPrefix(name, "keyturn-"), Image: image}},
			}}},
			Status: appsv1.DeploymentStatus{ReadyReplicas: ready},
		}
	}
	client := fake.NewClientset(
		deployment("keyturn-watcher", "registry.example.com:5000/keyturn:v0.1.0@sha256:0a", 2), deployment("keyturn-projector", "registry.example.com:5000/keyturn@sha256:0b", 0))
	got, err := (&installation{client: client, namespace: "keyturn-system"}).programs(t.Context())
	testkit.Must(t, err)
	want := []program{{"keyturn-projector", 0, 2, "sha256:0b"}, {"keyturn-watcher", 2, 2, "v0.1.0"}}
	testkit.WantEqual(t, "programs", want, got)
}
