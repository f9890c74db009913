package plugin

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/testkit"
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
					"--nats-store-dir=/data", "--nats-creds=/var/run/secrets/keyturn/nats/actuator.nk", "--settle", "2s",
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
				Ports: []corev1.ContainerPort{{Name: "nats", ContainerPort: 4222}},
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
	for _, tt := range []struct {
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
	} {
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
	testkit.Must(t, err)
	got := map[string]string{}
	for _, name := range []string{"KEYTURN_CLUSTER", "KEYTURN_ROLL_ALL", "KEYTURN_SETTLE", "KEYTURN_WINDOW", "KEYTURN_NATS_CREDS", "KEYTURN_NATS_URL", "KEYTURN_CANARY"} {
		if value, set := found.setting(name); set {
			got[name] = value
		}
	}
	want := map[string]string{"KEYTURN_CLUSTER": "prod", "KEYTURN_ROLL_ALL": "true", "KEYTURN_WINDOW": "prod-window"}
	testkit.WantEqual(t, "settings", want, got)
	if got := found.settings["KEYTURN_SETTLE"]; got != "2s" {
		t.Errorf("an argument counts as %q, want it before the variable", got)
	}
	if port, err := found.natsPort(); port != 4222 || err != nil || !found.embedsNATS() {
		t.Errorf("its NATS is embedded: %t, with port %d (%v)", found.embedsNATS(), port, err)
	}
	testkit.WantEqual(t, "Secrets with settings", []string{"keyturn-actuator-env"}, found.unknown())
	// The program has another NATS user than commands in its pod.
	if volume, key := found.mounted(found.environment["KEYTURN_NATS_CREDS"]); volume == nil || volume.Secret.SecretName != "keyturn-nats-reader" || key != "reader.nk" {
		t.Errorf("the credentials are %q of %+v", key, volume)
	}
}

func TestTheNATSBesideTheActuatorIsFound(t *testing.T) {
	actuator := actuatorIn("keyturn-system")
	pod := &actuator.Spec.Template.Spec
	pod.Containers[1].Args, pod.Containers[1].Ports = []string{"--nats-replicas=1"}, nil
	pod.InitContainers = []corev1.Container{{Name: "nats", Ports: []corev1.ContainerPort{{Name: "nats", ContainerPort: 4333}}}}
	found, err := find(t.Context(), fake.NewClientset(actuator), "")
	testkit.Must(t, err)
	if port, err := found.natsPort(); port != 4333 || err != nil || !found.embedsNATS() {
		t.Errorf("there is one: %t, with port %d (%v)", found.embedsNATS(), port, err)
	}
	pod.InitContainers = nil
	if found, err = find(t.Context(), fake.NewClientset(actuator), ""); err != nil || found.embedsNATS() {
		t.Errorf("without the container there is one (%v)", err)
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
	testkit.Must(t, err)
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

func TestACommandSaysThatTheCertificateOfNATSIsNotVerified(t *testing.T) {
	dir := t.TempDir()
	testkit.NewNATSUser(t, dir, "reader")
	testkit.NewCA(t).Issue(t, dir, time.Now().Add(time.Hour))
	secret := func(name, file string) *corev1.Secret {
		content, err := os.ReadFile(filepath.Join(dir, file))
		testkit.Must(t, err)
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "keyturn-system", Name: name}, Data: map[string][]byte{file: content}}
	}
	for _, tt := range []struct {
		name      string
		forbidden bool
		given     string
		want      int // lines
	}{
		{name: "where its CA may not be read", forbidden: true, want: 1},
		{name: "unless a CA is given", forbidden: true, given: "mine.pem"},
		{name: "unless its CA may be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			actuator := actuatorIn("keyturn-system")
			pods := &actuator.Spec.Template.Spec
			container := &pods.Containers[1]
			container.Env = append(container.Env, corev1.EnvVar{Name: "KEYTURN_NATS_CA", Value: "/var/run/secrets/keyturn/tls/ca.crt"})
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "tls", MountPath: "/var/run/secrets/keyturn/tls"})
			pods.Volumes = append(pods.Volumes, corev1.Volume{Name: "tls", VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: "keyturn-nats-tls"},
			}})
			client := fake.NewClientset(actuator, secret("keyturn-nats-reader", "reader.nk"), secret("keyturn-nats-tls", "ca.crt"))
			client.PrependReactor("get", "secrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
				refused := tt.forbidden && action.(k8stesting.GetAction).GetName() == "keyturn-nats-tls"
				return refused, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "keyturn-nats-tls", nil)
			})
			var said bytes.Buffer
			p := New("test")
			p.access.typed, p.nats.CAFile, p.terminal.errOut = client, tt.given, &said
			testkit.Must(t, p.find(t.Context()))
			for range 2 { // A command may connect more than once.
				if _, err := p.authenticate(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Count(said.String(), "The certificate of NATS is not verified"); got != tt.want {
				t.Errorf("it says so %d times, want %d: %s", got, tt.want, &said)
			}
		})
	}
}

// singleIn is the program that is all of an installation.
func singleIn(namespace string, args ...string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keyturn", Labels: map[string]string{"app.kubernetes.io/name": "keyturn"}},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "keyturn", Command: []string{"keyturn", "run"}, Args: append([]string{"--cluster=prod", "--roll-all"}, args...),
		}}}}},
	}
}

func TestAnInstallationOfOnePodIsFound(t *testing.T) {
	dir := t.TempDir()
	testkit.NewNATSUser(t, dir, "reader")
	seed, err := os.ReadFile(filepath.Join(dir, "reader.nk"))
	testkit.Must(t, err)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "keyturn-system", Name: "keyturn-nats-reader"}, Data: map[string][]byte{"reader.nk": seed},
	}
	for _, tt := range []struct {
		name    string
		objects []runtime.Object
		single  bool
		port    int
		err     string // of its credentials
	}{
		{"beside its key", []runtime.Object{singleIn("keyturn-system"), secret}, true, 4222, ""},
		{"with another port", []runtime.Object{singleIn("keyturn-system", "--nats-listen", "127.0.0.1:4333"), secret}, true, 4333, ""},
		{"that may make no Secret", []runtime.Object{singleIn("keyturn-system")}, true, 4222, "give its file reader.nk with --nats-creds"},
		{"that two pods replace", []runtime.Object{singleIn("keyturn-system"), actuatorIn("keyturn-system"), secret}, false, 4222, "KEYTURN_NATS_CA"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := find(t.Context(), fake.NewClientset(tt.objects...), "")
			testkit.Must(t, err)
			port, err := found.natsPort()
			if found.single != tt.single || !found.embedsNATS() || port != tt.port || err != nil || found.settings["KEYTURN_ROLL_ALL"] != "true" {
				t.Errorf("one pod: %t, embeds NATS: %t, with port %d (%v), settings %v", found.single, found.embedsNATS(), port, err, found.settings)
			}
			_, err = found.credentials(t.Context(), bus.ConnectOptions{})
			wantErrorWith(t, err, tt.err)
		})
	}
}
