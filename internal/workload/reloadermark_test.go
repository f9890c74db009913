package workload

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/tests/testkit"
)

// Ways in which a container or a pod reads a Secret.
var (
	readsAll = func(source events.Source) corev1.EnvFromSource {
		return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: source.Name}}}
	}
	readsKey = func(source events.Source) corev1.EnvVar {
		name := corev1.LocalObjectReference{Name: source.Name}
		return corev1.EnvVar{Name: "READ", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: name, Key: "a"}}}
	}
	volumeOf = func(source events.Source) corev1.Volume {
		return corev1.Volume{Name: source.Name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: source.Name}}}
	}
	mountsOf = func(volume string) []corev1.VolumeMount {
		return []corev1.VolumeMount{{Name: volume, MountPath: "/" + volume}}
	}
)

// withPods is web with containers "app" and "side", changed.
func withPods(change func(*corev1.PodSpec)) *appsv1.Deployment {
	d := webDeployment("50", rollOn("auto, secret/db, configmap/app, secret/foo-bar, secret/foo.bar"))
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}}, {Name: "side"}}
	if change != nil {
		change(&d.Spec.Template.Spec)
	}
	return d
}

// marked is a roll for changes, the newest last, with the fingerprints of their letters.
func marked(letters map[events.Source]string, changes ...events.Source) Write {
	w := Write{Rolls: true, Rolled: make(map[string]RolledFor), Cause: "c", Traceparent: "t"}
	for i, source := range changes {
		w.Rolled[source.String()] = RolledFor{Fingerprint: fp(letters[source]), Version: "100", UID: "u"}
		w.Changes = append(w.Changes, Change{Source: source, At: written.Add(time.Duration(i) * time.Second)})
	}
	return w
}

// operationsOf returns the operations of a patch that write Reloader's marks, one line of JSON each, without the tests among
// them, which other tests cover.
func operationsOf(t *testing.T, p Patch) []string {
	t.Helper()
	var all []json.RawMessage
	testkit.Must(t, json.Unmarshal(p.Body, &all))
	var lines []string
	for _, raw := range all {
		line := string(raw)
		isForOthers := strings.Contains(line, "/containers/") || strings.Contains(line, "reloader.stakater.com")
		if isForOthers && !strings.HasPrefix(line, `{"op":"test"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestARollWritesTheMarkerOfReloaderIfTold(t *testing.T) {
	letters := map[events.Source]string{db: "a", app: "b"}
	path := events.Source{Kind: events.KindOpenBao, Name: "prod/kv/shop/db"}
	tests := []struct {
		name    string
		pods    func(*corev1.PodSpec)
		changes []events.Source
		silent  bool // without --reloader
		want    string
	}{
		{name: "not without --reloader", changes: []events.Source{db}, silent: true},
		{
			name: "for a Secret that the second container reads", changes: []events.Source{db},
			pods: func(s *corev1.PodSpec) { s.Containers[1].EnvFrom = []corev1.EnvFromSource{readsAll(db)} },
			want: `{"type":"SECRET","name":"db","namespace":"shop","hash":"` + fp("a") + `","containerRefs":["side"],"observedAt":1773500966}`,
		},
		{
			name: "for the last of two changes", changes: []events.Source{db, app},
			want: `{"type":"CONFIGMAP","name":"app","namespace":"shop","hash":"` + fp("b") + `","containerRefs":["app"],"observedAt":1773500967}`,
		},
		{name: "not for a secret in a store", changes: []events.Source{path}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, _ := Read(deployments, withPods(tt.pods), Reading{Reloader: !tt.silent})
			first := patchFor(t, deployments, w, marked(letters, tt.changes...))
			var want []string
			if tt.want != "" {
				text, _ := json.Marshal(tt.want)
				want = []string{`{"op":"add","path":"/spec/template/metadata/annotations/reloader.stakater.com~1last-reloaded-from","value":` + string(text) + `}`}
			}
			testkit.WantEqual(t, "operations", want, operationsOf(t, first))
			second, err := deployments.Patch(w, marked(letters, tt.changes...))
			if err != nil || string(first.Body) != string(second.Body) {
				t.Errorf("made again, the patch is another one: %v", err)
			}
		})
	}
}

func TestVariablesAreSetWhereTheSourceIsRead(t *testing.T) {
	const dbVariable = `{"name":"STAKATER_DB_SECRET","value":"$db"}`
	addToApp := []string{`{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":` + dbVariable + `}`}
	beginInSide := []string{
		`{"op":"add","path":"/spec/template/spec/containers/1/env","value":[]}`,
		`{"op":"add","path":"/spec/template/spec/containers/1/env/-","value":` + dbVariable + `}`,
	}
	tests := []struct {
		name string
		pods func(*corev1.PodSpec)
		want []string
	}{
		{"in the first, if none reads it", nil, addToApp},
		{"in the one with the volume", func(s *corev1.PodSpec) {
			s.Volumes, s.Containers[1].VolumeMounts = []corev1.Volume{volumeOf(db)}, mountsOf("db")
		}, beginInSide},
		{"in the one with the volume, before one with envFrom", func(s *corev1.PodSpec) {
			s.Volumes, s.Containers[1].VolumeMounts = []corev1.Volume{volumeOf(db)}, mountsOf("db")
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{readsAll(db)}
		}, beginInSide},
		{"in place of the one that is there", func(s *corev1.PodSpec) {
			s.Containers[0].Env = []corev1.EnvVar{{Name: "A"}, {Name: "STAKATER_DB_SECRET", Value: "0beec7b5ea3f0fdbc95d0dd47f3c5bc275da8a33"}, {Name: "B"}}
		}, []string{`{"op":"replace","path":"/spec/template/spec/containers/0/env/1","value":` + dbVariable + `}`}},
		{"nowhere, in a workload whose template is elsewhere", func(s *corev1.PodSpec) { s.Containers = nil }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, _ := Read(deployments, withPods(tt.pods), Reading{Reloader: true, Variables: true})
			p := patchFor(t, deployments, w, marked(map[events.Source]string{db: "a"}, db))
			value := valueOf("STAKATER_DB_SECRET", map[string]RolledFor{"secret/db": {Fingerprint: fp("a")}})
			var want []string
			for _, line := range tt.want {
				want = append(want, strings.ReplaceAll(line, "$db", value))
			}
			testkit.WantEqual(t, "operations", want, operationsOf(t, p))
			if !strings.Contains(string(p.Body), kube.JSONPointer(annotationRevision)) || len(value) != 40 {
				t.Errorf("the value is %s, in the patch %s", value, p.Body)
			}
		})
	}
}

func TestVariablesAreCalledAsReloaderCallsThem(t *testing.T) {
	for source, want := range map[events.Source]string{
		{Kind: events.KindSecret, Name: "foo.bar"}:                  "STAKATER_FOO_BAR_SECRET",
		{Kind: events.KindConfigMap, Name: "a-.b--1"}:               "STAKATER_A_B_1_CONFIGMAP",
		{Kind: events.KindSecretProviderClass, Name: "vault-roles"}: "STAKATER_VAULT_ROLES_SECRETPROVIDERCLASS",
	} {
		if got := ReloaderVariable(source); got != want || !isReloaderVariable(got) {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
	for _, name := range []string{"STAKATER_DB", "STAKATER_SECRETS", "MY_STAKATER_DB_SECRET"} {
		if isReloaderVariable(name) {
			t.Errorf("%s is taken for one of Reloader's", name)
		}
	}
}

func TestWhatReloaderLeavesTellsWhatItMayHaveRolledFor(t *testing.T) {
	marker := func(name string, before time.Duration) string {
		return fmt.Sprintf(`{"type":"SECRET","name":%q,"observedAt":%d}`, name, written.Add(-before).Unix())
	}
	const db, mail = "STAKATER_DB_SECRET", "STAKATER_MAIL_SECRET"
	tests := []struct {
		name, marker string
		variables    []string
		want         bool
	}{
		{"a marker of the source", marker("db", 0), nil, true},
		{"a marker of another source", marker("mail", 0), nil, false},
		{"a marker of another source, and a variable from before that", marker("mail", time.Second), []string{db}, false},
		{"a marker of another source from before, and a variable", marker("mail", time.Hour), []string{db, mail}, true},
		{"a variable of another source", "", []string{mail}, false},
		{"what nobody can read", "{", nil, true},
		{"nothing", "", nil, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			at, d := metav1.NewTime(written), webDeployment("9", nil)
			d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: ReloaderManager, Time: &at}}
			if test.marker != "" {
				d.Spec.Template.Annotations = map[string]string{AnnotationReloadedFrom: test.marker}
			}
			for _, name := range test.variables {
				c := &d.Spec.Template.Spec.Containers[0]
				c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: "1"})
			}
			w, _ := Read(deployments, d, Reading{Reloader: true})
			if got := w.MayBeReloadedFor(source(t, "secret/db")); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
