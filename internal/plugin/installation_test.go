package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/bus"
)

var labels = map[string]string{"app.kubernetes.io/name": "keyturn-actuator"}

// actuatorIn is an actuator as the manifests create it.
func actuatorIn(namespace string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keyturn-actuator", Labels: labels},
		Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "mesh"}, {
				Name: "actuator", Command: []string{"actuator"},
				Args: []string{
					"--nats-embedded", "--nats-listen=0.0.0.0:4222", "--nats-creds=/var/run/secrets/keyturn/nats/actuator.nk", "--settle", "2s",
					"--window=$(KEYTURN_CLUSTER)-window",
				},
				EnvFrom: []corev1.EnvFromSource{
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "keyturn"}}},
					{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "keyturn-actuator-env"}}},
				},
				Env: []corev1.EnvVar{
					{Name: "KEYTURN_NATS_CREDS", Value: "/var/run/secrets/keyturn/reader/reader.nk"},
					{Name: "KEYTURN_ROLL_ALL", Value: "true"},
					{Name: "KEYTURN_CANARY", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
						LocalObjectReference: corev1.LocalObjectReference{Name: "keyturn"}, Key: "none", Optional: new(true),
					}}},
				},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "reader", MountPath: "/var/run/secrets/keyturn/reader"},
					{Name: "access", MountPath: "/etc/keyturn-store-access"},
				},
			}},
			Volumes: []corev1.Volume{
				{Name: "reader", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keyturn-nats-reader"}}},
				{Name: "access", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "keyturn-store-access"},
				}}},
			},
		}}},
	}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "keyturn-system", Name: name}, Data: data}
}

func TestTheInstallationIsFound(t *testing.T) {
	tests := []struct {
		name      string
		in        []string
		asked     string
		forbidden string // a namespace whose StatefulSets may not be listed; "*" means all namespaces at once
		want, err string
	}{
		{name: "in the usual namespace", in: []string{"keyturn-system", "team-a"}, want: "keyturn-system"},
		{name: "in the one that is named", in: []string{"keyturn-system", "team-a"}, asked: "team-a", want: "team-a"},
		{name: "nowhere", err: "no installation found"},
		{name: "more than once", in: []string{"team-b", "team-a"}, err: "more than one installation, choose with --installation: team-a, team-b"},
		{name: "elsewhere, where the usual namespace may not be read", in: []string{"tools"}, forbidden: "keyturn-system", want: "tools"},
		{
			name: "where all namespaces may not be read", in: []string{"tools"}, forbidden: "*",
			err: "no permission to list statefulsets.apps in all namespaces: ask an administrator of the cluster",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var objects []runtime.Object
			for _, namespace := range tt.in {
				objects = append(objects, actuatorIn(namespace))
			}
			client := fake.NewClientset(objects...)
			client.PrependReactor("list", "statefulsets", func(action k8stesting.Action) (bool, runtime.Object, error) {
				all := action.GetNamespace() == ""
				refused := tt.forbidden != "" && (action.GetNamespace() == tt.forbidden || all && tt.forbidden == "*")
				return refused, nil, apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "statefulsets"}, "", nil)
			})
			found, err := find(t.Context(), client, tt.asked)
			wantErrorWith(t, err, tt.err)
			if err == nil && found.namespace != tt.want {
				t.Errorf("found in %s, want %s", found.namespace, tt.want)
			}
		})
	}
}

func TestTheSettingsAreThoseOfTheProgram(t *testing.T) {
	client := fake.NewClientset(actuatorIn("keyturn-system"), configMap("keyturn", map[string]string{
		"KEYTURN_CLUSTER": "prod", "KEYTURN_ROLL_ALL": "false", "KEYTURN_SETTLE": "1s", "KEYTURN_NATS_URL": "nats://keyturn-nats.keyturn-system.svc:4222",
	}))
	found, err := find(t.Context(), client, "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"KEYTURN_CLUSTER", "KEYTURN_ROLL_ALL", "KEYTURN_SETTLE", "KEYTURN_WINDOW", "KEYTURN_NATS_CREDS", "KEYTURN_NATS_URL", "KEYTURN_CANARY"} {
		if value, set := found.setting(name); set {
			got[name] = value
		}
	}
	want := map[string]string{"KEYTURN_CLUSTER": "prod", "KEYTURN_ROLL_ALL": "true", "KEYTURN_SETTLE": "2s", "KEYTURN_WINDOW": "prod-window"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if port, err := found.natsPort(); port != 4222 || err != nil || !found.embedsNATS() {
		t.Errorf("its NATS is embedded: %t, with port %d (%v)", found.embedsNATS(), port, err)
	}
	if diff := cmp.Diff([]string{"keyturn-actuator-env"}, found.unknown()); diff != "" {
		t.Errorf("Secrets with settings (-want +got):\n%s", diff)
	}
	// The program has another NATS user than commands in its pod.
	if volume, key := found.mounted(found.environment["KEYTURN_NATS_CREDS"]); volume == nil || volume.Secret.SecretName != "keyturn-nats-reader" || key != "reader.nk" {
		t.Errorf("the credentials are %q of %+v", key, volume)
	}
}

func TestFilesOfTheActuatorAreFetched(t *testing.T) {
	client := fake.NewClientset(actuatorIn("keyturn-system"), configMap("keyturn-store-access", map[string]string{"grants.yaml": "grants: []\n", "other": "x"}))
	found, err := find(t.Context(), client, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, tt := range []struct{ name, path, want, err string }{
		{name: "a file", path: "/etc/keyturn-store-access/grants.yaml", want: "access/grants.yaml"},
		{name: "a folder", path: "/etc/keyturn-store-access", want: "access"},
		{name: "a file of a Secret", path: "/var/run/secrets/keyturn/reader/reader.nk", err: "comes from no ConfigMap"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := found.fetchFile(t.Context(), tt.path, dir)
			wantErrorWith(t, err, tt.err)
			if err == nil && got != filepath.Join(dir, tt.want) {
				t.Errorf("it is %s, want %s", got, filepath.Join(dir, tt.want))
			}
		})
	}
	content, err := os.ReadFile(filepath.Join(dir, "access", "grants.yaml"))
	if err != nil || !strings.Contains(string(content), "grants") {
		t.Errorf("the file has %q (%v)", content, err)
	}
}

func TestAPodIsChosenThatGoesOnToAnswer(t *testing.T) {
	pod := func(name string, phase corev1.PodPhase, ready, deleted bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "keyturn-system", Name: name, Labels: labels}, Status: corev1.PodStatus{Phase: phase}}
		if ready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if deleted {
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{}, []string{"tests"}
		}
		return p
	}
	leaving, starting := pod("a-leaving", corev1.PodRunning, true, true), pod("b-starting", corev1.PodRunning, false, false)
	ready, pending := pod("c-ready", corev1.PodRunning, true, false), pod("d-pending", corev1.PodPending, false, false)
	for _, tt := range []struct {
		name      string
		pods      []runtime.Object
		want, err string
	}{
		{name: "one that is ready", pods: []runtime.Object{leaving, starting, ready, pending}, want: "c-ready"},
		{name: "one that stays", pods: []runtime.Object{leaving, starting}, want: "b-starting"},
		{name: "one that is being deleted, if there is no other", pods: []runtime.Object{leaving, pending}, want: "a-leaving"},
		{name: "none that does not run", pods: []runtime.Object{pending}, err: "no pod of the actuator runs in namespace keyturn-system"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := (&installation{client: fake.NewClientset(tt.pods...), namespace: "keyturn-system"}).pod(t.Context())
			wantErrorWith(t, err, tt.err)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCredentialsThatAreGivenAreTaken(t *testing.T) {
	found, err := find(t.Context(), fake.NewClientset(actuatorIn("keyturn-system")), "")
	if err != nil {
		t.Fatal(err)
	}
	// The Secrets do not exist.
	if _, err := found.credentials(t.Context(), bus.ConnectOptions{CredsFile: "mine.nk"}); err == nil {
		t.Error("the CA is not looked for")
	}
	if _, err := found.credentials(t.Context(), bus.ConnectOptions{CAFile: "mine.pem"}); err == nil {
		t.Error("the credentials are not looked for")
	}
	if options, err := found.credentials(t.Context(), bus.ConnectOptions{CredsFile: "mine.nk", CAFile: "mine.pem"}); err != nil || len(options) > 0 {
		t.Errorf("got %d options beside those that were given (%v)", len(options), err)
	}
}
