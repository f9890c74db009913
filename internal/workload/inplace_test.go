package workload

import (
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// toldInPlace is web with a pod spec, read by an actuator that asks pods to reload in place.
func toldInPlace(t *testing.T, spec corev1.PodSpec) *Workload {
	t.Helper()
	deployment := webDeployment("50", map[string]string{AnnotationReload: "http://:9090/-/reload"})
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	deployment.Spec.Template.Spec = spec
	w, ok := Read(deployments, deployment, Reading{InPlace: true})
	if !ok || w.InPlace == nil {
		t.Fatalf("it is not read: %v", w.Problems)
	}
	return w
}

func TestRunningPodsSeeAChangeOfWhatOnlyTheirContainersReadAsFiles(t *testing.T) {
	// mounting is a container that mounts the volume "config", with a subPath if it is not empty.
	mounting := func(subPath string) []corev1.Container {
		return []corev1.Container{{Name: "app", VolumeMounts: []corev1.VolumeMount{{Name: "config", SubPath: subPath}}}}
	}
	secret := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}
	volumes, pulls := []corev1.Volume{{Name: "config", VolumeSource: secret}}, []corev1.LocalObjectReference{{Name: "db"}}
	both, again := mounting(""), mounting("")
	both[0].EnvFrom = []corev1.EnvFromSource{readsAll(db)}
	again[0].VolumeMounts = append(again[0].VolumeMounts, corev1.VolumeMount{Name: "again", SubPath: "password"})
	tests := []struct {
		name string
		spec corev1.PodSpec
		want string
	}{
		{"a Secret that is mounted", corev1.PodSpec{Containers: mounting(""), Volumes: volumes}, ""},
		{"one that is also used to pull images", corev1.PodSpec{Containers: mounting(""), Volumes: volumes, ImagePullSecrets: pulls}, ""},
		{"a subPath", corev1.PodSpec{Containers: mounting("password"), Volumes: volumes}, "secret/db is mounted with subPath"},
		{"a variable beside the file", corev1.PodSpec{Containers: both, Volumes: volumes}, "secret/db is read as environment"},
		{
			"an init container that mounts it, too",
			corev1.PodSpec{InitContainers: mounting(""), Containers: mounting(""), Volumes: volumes},
			"secret/db is read by an init container",
		},
		{
			"a second volume with a subPath",
			corev1.PodSpec{Containers: again, Volumes: []corev1.Volume{volumes[0], {Name: "again", VolumeSource: secret}}},
			"secret/db is mounted with subPath",
		},
		{"an image pull", corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}, ImagePullSecrets: pulls}, "secret/db is read to pull images"},
		{
			"the network of the node",
			corev1.PodSpec{HostNetwork: true, Containers: mounting(""), Volumes: volumes},
			"the pods have the network of their node, whose address is not theirs",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := toldInPlace(t, tt.spec).InPlace.Refuses(db); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAWorkloadWhosePodsCannotBeToldSaysWhyAndIsRolled(t *testing.T) {
	reload := map[string]string{AnnotationReload: "http://:9090/-/reload"}
	selected := webDeployment("50", reload)
	selected.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	wrong := selected.DeepCopy()
	wrong.Annotations[AnnotationReload] = "http://example.org/reload"
	report := reportCronJob()
	report.Annotations = reload
	cronJob, _ := Read(cronJobs, report, Reading{InPlace: true})
	off, _ := Read(deployments, selected, Reading{})
	invalid, _ := Read(deployments, wrong, Reading{InPlace: true})
	for want, w := range map[string]*Workload{
		"keyturn.dev/reload: is for a Deployment, a StatefulSet or a DaemonSet":                  cronJob,
		"is not allowed with these flags, without --reload-in-place. The workload rolls instead": off,
		"the host is each pod itself. The workload rolls instead":                                invalid,
	} {
		if w.InPlace != nil || len(w.Problems) != 1 || !strings.Contains(w.Problems[0].Error(), want) {
			t.Errorf("the problems are %v, want %q; it is told: %t", w.Problems, want, w.InPlace != nil)
		}
	}
}

func TestAnEndpointIsAPortOfThePodAndAPath(t *testing.T) {
	tests := []struct {
		name, text string
		want       Endpoint
		problem    string
	}{
		{"the form of Prometheus", "http://:9090/-/reload", Endpoint{9090, "/-/reload"}, ""},
		{"no path", "http://:80", Endpoint{80, "/"}, ""},
		{"a host", "http://169.254.169.254:80/latest", Endpoint{}, "is not a port and a path"},
		{"TLS", "https://:443/reload", Endpoint{}, "asks for TLS"},
		{"a port that is too high", "http://:65536/reload", Endpoint{}, "has no port"},
		{"a query", "http://:80/reload?all=1", Endpoint{}, "has a path with other characters"},
		{"a folder above", "http://:80/a/../b", Endpoint{}, "has a path with a . or .. element"},
		{"a long path", "http://:80/" + strings.Repeat("a", 600), Endpoint{}, "is longer than 512 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseEndpoint(tt.text)
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("the error is %v, want %q", err, tt.problem)
			}
			if err != nil && !strings.HasSuffix(err.Error(), "write http://:<port>/<path>, such as http://:9090/-/reload; the host is each pod itself") {
				t.Errorf("%v does not say what is allowed", err)
			}
		})
	}
}

func TestAnEndpointThatIsNotValidIsNotQuoted(t *testing.T) {
	const credential = "s3cr3t"
	for _, text := range []string{
		"http://me:" + credential + "@:9090/reload", "http://:" + credential + "@:9090/reload", "http://:9090/reload?token=" + credential,
		"http://:9090?token=" + credential, "https://:9090/" + credential, credential, "http://:9090/../" + credential, "http://:" + credential,
		"http://:9090/" + credential + strings.Repeat("a", maxEndpoint),
	} {
		if _, err := parseEndpoint(text); err == nil || strings.Contains(err.Error(), credential) {
			t.Errorf("%q has the error %v", text, err)
		}
		deployment := webDeployment("50", map[string]string{AnnotationReload: text})
		w, _ := Read(deployments, deployment, Reading{InPlace: true})
		if w.InPlace != nil || len(w.Problems) != 1 || strings.Contains(w.Problems[0].Error(), credential) {
			t.Errorf("with %q it has the problems %v", text, w.Problems)
		}
	}
}

func FuzzParseEndpoint(f *testing.F) {
	for _, text := range []string{"http://:9090/-/reload", "http://:80", "http://:1/%41", "http://h:80/", "http://:80/..", "https://:1/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		endpoint, err := parseEndpoint(text)
		if err != nil {
			return
		}
		again, err := parseEndpoint(endpoint.String())
		if err != nil || again != endpoint {
			t.Fatalf("%q is read as %+v, and that again as %+v (%v)", text, endpoint, again, err)
		}
		// The caller adds the address of a pod before it.
		target, err := url.Parse("http://10.0.0.1" + strings.TrimPrefix(endpoint.String(), "http://"))
		if err != nil || target.Hostname() != "10.0.0.1" || target.EscapedPath() != endpoint.Path || target.RawQuery != "" || target.User != nil {
			t.Fatalf("%q leads to %v (%v)", text, target, err)
		}
	})
}
