package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestFilesOfTheActuatorAreFetched(t *testing.T) {
	client := fake.NewClientset(actuatorIn("keyturn-system"), configMap("keyturn-store-access", map[string]string{"grants.yaml": "grants: []\n", "other": "x"}))
	found, err := find(t.Context(), client, "")
	testkit.Must(t, err)
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

// TestNamesOfAClusterStayInTheirFolder has names that an API server refuses, unless it is the attacker's own.
func TestNamesOfAClusterStayInTheirFolder(t *testing.T) {
	const stolen = "../../stolen"
	for _, tt := range []struct {
		name  string
		alter func(volume *corev1.Volume, mount *corev1.VolumeMount)
		key   string
		err   string
	}{
		{"as the manifests have them", func(*corev1.Volume, *corev1.VolumeMount) {}, "grants.yaml", ""},
		{"a volume", func(volume *corev1.Volume, mount *corev1.VolumeMount) {
			volume.Name, mount.Name = "../stolen", "../stolen"
		}, "grants.yaml", `"volumes[].name" is "../stolen"`},
		{"a path in a volume", func(volume *corev1.Volume, _ *corev1.VolumeMount) {
			volume.ConfigMap.Items = []corev1.KeyToPath{{Key: "grants.yaml", Path: stolen}}
		}, "grants.yaml", `"items[].path of the volume access" is "../../stolen"`},
		{"an absolute path in a volume", func(volume *corev1.Volume, _ *corev1.VolumeMount) {
			volume.ConfigMap.Items = []corev1.KeyToPath{{Key: "grants.yaml", Path: "/stolen\nnow"}}
		}, "grants.yaml", `"items[].path of the volume access" is "/stolen\nnow"`},
		{"a key", func(*corev1.Volume, *corev1.VolumeMount) {}, stolen, `"key of the ConfigMap keyturn-store-access" is "../../stolen"`},
		{"what is read", func(_ *corev1.Volume, mount *corev1.VolumeMount) {
			mount.SubPath = "../../secret"
		}, "grants.yaml", "subPath"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			actuator := actuatorIn("keyturn-system")
			pods := &actuator.Spec.Template.Spec
			tt.alter(&pods.Volumes[1], &pods.Containers[1].VolumeMounts[1])
			found, err := find(t.Context(), fake.NewClientset(actuator, configMap("keyturn-store-access", map[string]string{tt.key: "x"})), "")
			testkit.Must(t, err)
			home := t.TempDir()
			dir := filepath.Join(home, "copies")
			got, err := found.fetchFile(t.Context(), "/etc/keyturn-store-access/grants.yaml", dir)
			wantErrorWith(t, err, tt.err)
			if err == nil && got != filepath.Join(dir, "access", "grants.yaml") {
				t.Errorf("the copy is %s", got)
			}
			if err != nil && (got != "" || strings.Contains(err.Error(), "\n")) {
				t.Errorf("got %q with the error %q, want no file and one line", got, err)
			}
			if beside, _ := filepath.Glob(filepath.Join(home, "stolen*")); len(beside) > 0 {
				t.Errorf("it has written %s", beside)
			}
			if in, _ := filepath.Glob(filepath.Join(dir, "stolen*")); len(in) > 0 {
				t.Errorf("it has written %s", in)
			}
		})
	}
}

func FuzzNamesOfAClusterStayInTheirFolder(f *testing.F) {
	for _, name := range []string{"grants.yaml", "a/b", ".", "", "..", "../x", "a/../../x", "/etc/passwd", `..\x`, "a\x00b", "..\n", "\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		folder := filepath.Join(string(filepath.Separator), "tmp", "keyturn")
		file, err := inside(folder, "items[].path", name)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("the error is more than a line of text: %q", err)
			}
			return
		}
		if file != folder && !strings.HasPrefix(file, folder+string(filepath.Separator)) {
			t.Errorf("%q leads to %s", name, file)
		}
	})
}
