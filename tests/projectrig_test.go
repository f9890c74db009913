package tests

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

const (
	projectorAccount = "keyturn-projector"
	projectCluster   = "demo"
)

// projectRig is a namespace with a projector, whose account has the rules of the test and no others. The test is the watcher: it publishes what has
// changed.
type projectRig struct {
	*testing.T
	kube      kubernetes.Interface
	widgets   dynamic.ResourceInterface
	namespace string
	nats      *natstest.Server
	bus       *bus.Bus
	config    string
	// resync is how often the projector compares everything. Empty: each second.
	resync    string
	projector *programs.Program
	// asked are the entries of the account in the audit log, and read is how far that was read.
	asked []testbed.AuditEntry
	read  int64
}

// exampleOf returns a file of deploy/projections/example for the namespace of a test.
func exampleOf(t *testing.T, file, namespace string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "deploy", "projections", "example", file))
	testkit.Must(t, err)
	return []byte(strings.ReplaceAll(string(content), "namespace: shop", "namespace: "+namespace))
}

// projectorRules are those of deploy/projections/example.
func projectorRules(t *testing.T, namespace string) []rbacv1.PolicyRule {
	t.Helper()
	objects, err := testbed.ReadManifests(bytes.NewReader(exampleOf(t, "rbac.yaml", namespace)))
	testkit.Must(t, err)
	for _, object := range objects {
		if object.GetKind() != "Role" {
			continue
		}
		var role rbacv1.Role
		testkit.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
		return role.Rules
	}
	t.Fatal("the example has no Role")
	return nil
}

// newProjectRig makes a rig with an account that has the rules. The projector does not run yet.
func newProjectRig(t *testing.T, change func([]rbacv1.PolicyRule) []rbacv1.PolicyRule) *projectRig {
	t.Helper()
	testkit.Must(t, plane.Apply(t.Context(), "testdata/widgets.yaml"))
	r := &projectRig{T: t, kube: kubernetes.NewForConfigOrDie(plane.Config()), namespace: plane.Namespace(t)}
	resource := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}
	r.widgets = dynamic.NewForConfigOrDie(plane.Config()).Resource(resource).Namespace(r.namespace)
	rules := projectorRules(t, r.namespace)
	if change != nil {
		rules = change(rules)
	}
	r.grant(rules)
	var err error
	if r.read, err = plane.AuditEnd(); err != nil {
		t.Fatal(err)
	}
	r.config = filepath.Join(t.TempDir(), "projections.yaml")
	r.configure(string(exampleOf(t, "projections.yaml", r.namespace)))

	r.nats = natstest.Start(t, natstest.Options{})
	r.nats.Declare()
	connection, err := nats.Connect(r.nats.URL(), nats.Timeout(patience))
	testkit.Must(t, err)
	t.Cleanup(connection.Close)
	if r.bus, err = bus.Open(t.Context(), connection, projectCluster, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// grant gives the account of the projector, which is in the namespace of the test, the rules.
func (r *projectRig) grant(rules []rbacv1.PolicyRule) {
	r.Helper()
	meta, ctx := metav1.ObjectMeta{Name: projectorAccount, Namespace: r.namespace}, r.Context()
	_, err := r.kube.CoreV1().ServiceAccounts(r.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err == nil {
		_, err = r.kube.RbacV1().Roles(r.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = r.kube.RbacV1().RoleBindings(r.namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: projectorAccount},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.namespace, Name: projectorAccount}},
		}, metav1.CreateOptions{})
	}
	testkit.Must(r, err)
}

// configure writes the file of the projector, which reads it when it starts.
func (r *projectRig) configure(content string) {
	r.Helper()
	testkit.Must(r, os.WriteFile(r.config, []byte(content), 0o600))
}

// requests are those of the account of the projector.
func (r *projectRig) requests() []testbed.AuditEntry {
	r.Helper()
	entries, end, err := plane.AuditSince(r.read)
	testkit.Must(r, err)
	user := testbed.ServiceAccountUser(r.namespace, projectorAccount)
	r.read = end
	r.asked = append(r.asked, slices.DeleteFunc(entries, func(entry testbed.AuditEntry) bool { return entry.User != user })...)
	return testbed.Requests(r.asked, user)
}

// start starts the projector, with more in its environment, and returns at once.
func (r *projectRig) start(env ...string) {
	r.Helper()
	kubeconfig, err := plane.ServiceAccountKubeconfig(r.Context(), r.namespace, projectorAccount)
	testkit.Must(r, err)
	r.projector = &programs.Program{Process: process.Run(r.T, process.Options{
		Path: binaries.Keyturn, Name: "projector", Env: append([]string{"GORACE=atexit_sleep_ms=0"}, env...),
		Args: []string{
			"project", "--cluster", projectCluster, "--kubeconfig", kubeconfig, "--nats-url", r.nats.URL(), "--metrics-addr", "127.0.0.1:0",
			"--health-addr", "127.0.0.1:0", "--projections-config", r.config, "--resync", cmp.Or(r.resync, "1s"), "--log-level", "debug",
		},
	})}
}

// startReady starts the projector and waits until it is ready.
func (r *projectRig) startReady(env ...string) {
	r.Helper()
	r.start(env...)
	r.projector.AwaitReady(r.T, patience)
}

// stopProjector ends the program.
func (r *projectRig) stopProjector() {
	r.Helper()
	testkit.Must(r, r.projector.Stop(patience))
}

// reads are the times at which the projector has read a Secret.
func (r *projectRig) reads() []testbed.AuditEntry {
	r.Helper()
	return slices.DeleteFunc(r.requests(), func(entry testbed.AuditEntry) bool { return entry.Resource != "secrets" })
}

// awaitReads waits until the projector has read Secrets so often.
func (r *projectRig) awaitReads(count int) {
	r.Helper()
	testkit.Await(r.T, "the Secret was read again", func(context.Context) bool { return len(r.reads()) >= count })
}

func (r *projectRig) secret(name string, data map[string]string) {
	r.Helper()
	testkit.Must(r, programs.SetSecret(r.Context(), r.kube, r.namespace, name, data))
}

// widget creates a Widget, or applies it again, with an annotation, none if it is empty.
func (r *projectRig) widget(name, wants string) {
	r.Helper()
	manifest := fmt.Sprintf("{apiVersion: example.org/v1, kind: Widget, metadata: {namespace: %s, name: %s}, spec: {size: 3}}", r.namespace, name)
	if wants != "" {
		manifest = strings.Replace(manifest, "name: "+name, fmt.Sprintf("name: %s, annotations: {keyturn.dev/project: %q}", name, wants), 1)
	}
	testkit.Must(r, plane.ApplyYAML(r.Context(), strings.NewReader(manifest)))
}

func (r *projectRig) object(name string) *unstructured.Unstructured {
	r.Helper()
	object, err := r.widgets.Get(r.Context(), name, metav1.GetOptions{})
	testkit.Must(r, err)
	return object
}

// field returns a field of spec.auth, or "none".
func (r *projectRig) field(name, field string) string {
	r.Helper()
	text, found, err := unstructured.NestedString(r.object(name).Object, "spec", "auth", field)
	testkit.Must(r, err)
	if !found {
		return "none"
	}
	return text
}

func (r *projectRig) awaitField(name, field, want string) {
	r.Helper()
	testkit.Await(r.T, fmt.Sprintf("%s of %s is %q", field, name, want), func(context.Context) bool { return r.field(name, field) == want })
}
