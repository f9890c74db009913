package reloader

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

// keysRole lets the account keep its keys in Secrets.
const keysRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: keys, namespace: NAMESPACE}
rules:
  - {apiGroups: [""], resources: [secrets], verbs: [create]}
  - {apiGroups: [""], resources: [secrets], resourceNames: [keyturn-fingerprint-key, keyturn-nats-reader, keyturn-nats-storage], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: keys, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: keys}
subjects: [{kind: ServiceAccount, name: reloader, namespace: keyturn-system}]
`

// run starts keyturn run for the rig's namespace, with its Secrets in another one, and waits until it is ready. It returns the address of its NATS.
func (r *rig) run(keys string) string {
	r.Helper()
	port, err := process.FreePort()
	testkit.Must(r, err)
	address := process.Address(port)
	if r.program, err = command.Run(r.dir, keys, address, "--namespaces", r.namespace, "--leader-elect=false", "--settle=50ms"); err != nil {
		r.Fatal(err)
	}
	program := r.program
	r.Cleanup(func() {
		// The error is the exit status of a process that the test has ended.
		_ = program.Stop(20 * time.Second)
		if r.Failed() {
			r.Logf("log of %s %d:\n%s", program.Name(), program.Pid(), program.Output())
		}
	})
	r.program.AwaitReady(r.T, testkit.Patience)
	return address
}

// onItsOwn are Keyturn's annotations of a workload that rolls on everything that it reads.
func onItsOwn() map[string]string { return map[string]string{"keyturn.dev/roll-on": "auto"} }

// reading deploys a workload that rolls for its Secret by Keyturn's own annotation.
func (r *rig) reading(name string) {
	r.Helper()
	r.secret(name, map[string]string{"password": "one"})
	r.deploy(name, onItsOwn(), func(template *corev1.PodTemplateSpec) { programs.ReadSecret(template, name) })
}

// TestOnePodFindsWhatHasChangedWhileItWasDownWithoutAVolume loses the streams with the pod. The key is in a Secret, under which the records were made.
func TestOnePodFindsWhatHasChangedWhileItWasDownWithoutAVolume(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keys := plane.Namespace(t)
	testkit.Must(t, plane.ApplyYAML(t.Context(), strings.NewReader(strings.ReplaceAll(keysRole, "NAMESPACE", keys))))
	for _, name := range []string{"changed", "same"} {
		r.reading(name)
	}
	r.placeSentinels(onItsOwn())
	address := r.run(keys)
	for _, name := range []string{"changed", "same"} {
		r.rolls(name, func() { r.secret(name, map[string]string{"password": "two"}) })
	}
	r.asksAs(keys, address)
	r.stop()
	testkit.Must(t, os.RemoveAll(filepath.Join(r.dir, "nats")))
	r.secret("changed", map[string]string{"password": "three"})
	r.label("same")
	before := r.writes("same")
	r.rolls("changed", func() { r.run(keys) })
	r.passSentinels()
	if now := r.writes("same"); now != before {
		t.Errorf("same was rolled %d times, want none", now-before)
	}
}

// asksAs holds that people reach NATS with the key of the reader, and nobody without it.
func (r *rig) asksAs(keys, address string) {
	r.Helper()
	secret, err := r.client.CoreV1().Secrets(keys).Get(r.Context(), "keyturn-nats-reader", metav1.GetOptions{})
	testkit.Must(r, err)
	seed := filepath.Join(r.dir, "reader.nk")
	testkit.Must(r, os.WriteFile(seed, secret.Data["reader.nk"], 0o600))
	ask := func(args ...string) (string, error) {
		all := append([]string{"history", "-n", r.namespace, "--cluster", "demo", "--kubeconfig", plane.Kubeconfig(), "--nats-url", "nats://" + address}, args...)
		out, err := exec.CommandContext(r.Context(), command.Binary(), all...).CombinedOutput()
		return string(out), err
	}
	testkit.Await(r.T, "the history tells of the rollout", func(context.Context) bool {
		out, err := ask("--nats-creds", seed)
		if err != nil {
			r.Fatalf("history with the key of the reader: %v\n%s", err, out)
		}
		return strings.Contains(out, "deployment/changed")
	})
	if out, err := ask(); err == nil {
		r.Errorf("history without a key:\n%s", out)
	}
}

// TestOnePodWithoutPermissionKeepsItsKeysBesideTheStreams is what the Role of Reloader's chart allows.
func TestOnePodWithoutPermissionKeepsItsKeysBesideTheStreams(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keys := plane.Namespace(t)
	r.reading("web")
	r.run(keys)
	r.rolls("web", func() { r.secret("web", map[string]string{"password": "two"}) })
	r.stop()
	if !strings.Contains(r.program.Output(), "keys are kept beside the streams") {
		t.Errorf("the log does not say where the keys are:\n%s", r.program.Output())
	}
	for _, name := range []string{"keyturn-fingerprint-key", "keyturn-nats-reader"} {
		if _, err := r.client.CoreV1().Secrets(keys).Get(context.WithoutCancel(t.Context()), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the Secret %s: got %v, want none", name, err)
		}
	}
	r.secret("web", map[string]string{"password": "three"})
	r.rolls("web", func() { r.run(keys) })
}
