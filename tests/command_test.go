package tests

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

// result is the output and exit status of a program that has ended by itself.
type result struct {
	stdout, stderr string
	code           int
}

// command is a run of a binary from its start to its end.
type command struct {
	binary string
	args   []string
	// env is added to the environment of the test.
	env []string
}

// run fails the test where the program does not end.
func (c command) run(t *testing.T) result {
	t.Helper()
	ctx, stop := running.WithTimeout(t.Context(), patience)
	defer stop()
	cmd := exec.CommandContext(ctx, c.binary, c.args...)
	cmd.Env = append(os.Environ(), c.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("%s %s: %v\n%s", c.binary, strings.Join(c.args, " "), context.Cause(ctx), stderr.String())
	case err != nil && !errors.As(err, &exit):
		t.Fatal(err)
	}
	return result{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
}

// refused checks that a program ended with code 1 and said why on stderr: a line for each of the texts, which it holds,
// and no other.
func (r result) refused(t *testing.T, want ...string) {
	t.Helper()
	if r.code != 1 {
		t.Errorf("exit code: got %d, want 1", r.code)
	}
	var lines []string
	for line := range strings.Lines(r.stderr) {
		if !strings.HasPrefix(line, "{") { // The log.
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d:\n%s", len(lines), len(want), r.stderr)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, "error: ") || !strings.Contains(line, want[i]) {
			t.Errorf("line %d: got %q, want error: with %q", i+1, line, want[i])
		}
	}
}

// ask runs a command as an administrator would, and returns its output.
func (r *rig) ask(args ...string) string {
	r.Helper()
	got := r.command(args...).run(r.T)
	if got.code != 0 {
		r.Fatalf("keyturn %s: exit code %d:\n%s", strings.Join(args, " "), got.code, got.stderr)
	}
	return got.stdout
}

// command makes a command for people, whose tables are as wide as they must be.
func (r *rig) command(args ...string) command {
	if slices.Contains([]string{"explain", "history", "dead-letters", "clusters"}, args[0]) {
		args = append(args, "--output", "wide")
	}
	return command{binary: r.programs.KeyturnBinary(), args: append(args, "--installation", r.namespace,
		"--cluster", r.programs.Cluster(), "--nats-url", r.programs.NATSURL(), "--kubeconfig", plane.Kubeconfig())}
}

// installed makes an installation known to the commands that reads settings and files, below /etc/keyturn-files, as the programs of the rig do. It has
// no pods.
func (r *rig) installed(settings, files map[string]string) {
	r.Helper()
	labels := map[string]string{"app.kubernetes.io/name": "keyturn-actuator"}
	container := corev1.Container{
		Name: "actuator", Image: "keyturn", VolumeMounts: []corev1.VolumeMount{{Name: "files", MountPath: "/etc/keyturn-files"}},
	}
	for name, value := range settings {
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	volume := corev1.Volume{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "keyturn-files"},
	}}}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "keyturn-actuator", Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{container}, Volumes: []corev1.Volume{volume}},
			},
		},
	}
	sets, configMaps := r.client.AppsV1().StatefulSets(r.namespace), r.client.CoreV1().ConfigMaps(r.namespace)
	_, err := sets.Create(r.Context(), set, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = sets.Update(r.Context(), set, metav1.UpdateOptions{})
	} else if err == nil {
		_, err = configMaps.Create(r.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "keyturn-files"}, Data: files}, metav1.CreateOptions{})
	}
	testkit.Must(r, err)
}

// series returns the value of a program's metric with these labels, empty if there is none.
func (r *rig) series(program *programs.Program, name string, labels ...string) string {
	r.Helper()
	_, metrics, err := program.Get(r.Context(), "metrics", "/metrics")
	testkit.Must(r, err)
	for line := range strings.Lines(metrics) {
		has := func(label string) bool { return strings.Contains(line, label) }
		if (strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ")) && !slices.ContainsFunc(labels, func(label string) bool { return !has(label) }) {
			fields := strings.Fields(line)
			return fields[len(fields)-1]
		}
	}
	return ""
}

// lines returns the lines of a text that contain all of the words.
func lines(text string, words ...string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			found = append(found, line)
		}
	}
	return found
}
