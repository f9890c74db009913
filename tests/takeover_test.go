package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/testkit"
)

// taken is whoever has the token of an account.
type taken struct{ client dynamic.Interface }

// answered returns nil if a request succeeds. The error wraps errRefused if the API server refuses it, by a role or a policy.
func answered(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// sends is an attempt to send a request with a verb, in a dry run. The resource is one of a kind, such as secrets or deployments.apps, and may have a
// subresource. An empty namespace is none.
func (u taken) sends(verb, resource, namespace, name string) func(t *testing.T) error {
	return func(t *testing.T) error {
		path, sub, _ := strings.Cut(resource, "/")
		group := schema.ParseGroupResource(path)
		var subresources []string
		if sub != "" {
			subresources = []string{sub}
		}
		client := dynamic.ResourceInterface(u.client.Resource(group.WithVersion("v1")))
		if namespace != "" {
			client = u.client.Resource(group.WithVersion("v1")).Namespace(namespace)
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: group.Group, Version: "v1", Kind: "Any"})
		object.SetName(name)
		dry, ctx := []string{metav1.DryRunAll}, t.Context()
		var err error
		switch verb {
		case "get":
			_, err = client.Get(ctx, name, metav1.GetOptions{}, subresources...)
		case "list":
			_, err = client.List(ctx, metav1.ListOptions{})
		case "create":
			_, err = client.Create(ctx, object, metav1.CreateOptions{DryRun: dry}, subresources...)
		case "update":
			_, err = client.Update(ctx, object, metav1.UpdateOptions{DryRun: dry}, subresources...)
		case "patch":
			label := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
			_, err = client.Patch(ctx, name, types.MergePatchType, label, metav1.PatchOptions{DryRun: dry}, subresources...)
		case "delete":
			err = client.Delete(ctx, name, metav1.DeleteOptions{DryRun: dry}, subresources...)
		default:
			t.Fatalf("no such verb: %s", verb)
		}
		return answered(err)
	}
}

// onAnyCluster are requests that would give an account more than it has, or hide what it has done.
func (u taken) onAnyCluster(namespace string) []attempt {
	const theirs, policies = "keyturn-system-actuator", "validatingadmissionpolicies.admissionregistration.k8s.io"
	const bindings = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
	return []attempt{
		{"starts a pod", "", u.sends("create", "pods", namespace, "a")},
		{"enters a pod", "", u.sends("create", "pods/exec", namespace, "a")},
		{"starts a Job", "", u.sends("create", "jobs.batch", namespace, "a")},
		{"asks for the token of another account", "", u.sends("create", "serviceaccounts/token", namespace, "default")},
		{"makes an account", "", u.sends("create", "serviceaccounts", namespace, "a")},
		{"binds a role", "", u.sends("create", "rolebindings.rbac.authorization.k8s.io", namespace, "a")},
		{"binds a role in the cluster", "", u.sends("create", "clusterrolebindings.rbac.authorization.k8s.io", "", "a")},
		{"changes a ConfigMap", "", u.sends("patch", "configmaps", namespace, "kube-root-ca.crt")},
		{"deletes a policy", "", u.sends("delete", policies, "", theirs)},
		{"deletes what puts a policy into force", "", u.sends("delete", bindings, "", theirs)},
		{"deletes a Secret", "", u.sends("delete", "secrets", namespace, "a")},
		{"patches a Secret", "", u.sends("patch", "secrets", namespace, "a")},
		{"changes a node", "", u.sends("patch", "nodes", "", "a")},
	}
}

func TestWhoeverTakesOverTheJobOfTheKeysMakesItsSecretsAndNothingElse(t *testing.T) {
	t.Parallel()
	r := newKeysRig(t)
	r.confine()
	if output, err := r.run("install"); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	config := configOf(t, r.namespace, "keyturn-keys")
	client, u := kubernetes.NewForConfigOrDie(config), taken{dynamic.NewForConfigOrDie(config)}
	create := func(ctx context.Context, namespace string, secret corev1.Secret) error {
		_, err := client.CoreV1().Secrets(namespace).Create(ctx, &secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return answered(err)
	}
	creates := func(name, file string) func(*testing.T) error {
		return func(t *testing.T) error {
			return create(t.Context(), r.namespace, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{file: []byte("x")}})
		}
	}
	testkit.Await(t, "the policy is in force", func(ctx context.Context) bool {
		return r.refused(create(ctx, r.namespace, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other"}}))
	})
	tryAll(t, u.onAnyCluster(r.namespace))
	tryAll(t, []attempt{
		{"gives NATS a configuration", "", creates("keyturn-nats-leaf", "leaf.conf")},
		{"gives the watcher variables", "", creates("keyturn-watcher-env", "KEYTURN_KUBECONFIG")},
		{"gives the actuator variables", "", creates("keyturn-actuator-env", "KEYTURN_NATS_CONFIG")},
		{"gives NATS variables", "", creates("keyturn-nats-env", "KEYTURN_NATS_CONFIG")},
		{"gives the receiver its stores", "", creates("keyturn-openbao", "stores.yaml")},
		{"takes a name that begins like those of keys", "", creates("keyturn-nats-evil", "x")},
		{"has the API server make such a name", "", func(t *testing.T) error {
			return create(t.Context(), r.namespace, corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "keyturn-nats-"}})
		}},
		{"gets the token of another account", "", func(t *testing.T) error {
			return create(t.Context(), r.namespace, corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "keyturn-nats-routes", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
				Type:       corev1.SecretTypeServiceAccountToken,
			})
		}},
		{"makes a Secret in another namespace", "", func(t *testing.T) error {
			return create(t.Context(), metav1.NamespaceDefault, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keyturn-nats-routes"}})
		}},
		{"changes the key of the watcher", "", u.sends("update", "secrets", r.namespace, "keyturn-nats-watcher")},
		{"reads the key of the watcher", "", u.sends("get", "secrets", r.namespace, "keyturn-nats-watcher")},
		{"reads the fingerprint key", "", u.sends("get", "secrets", r.namespace, "keyturn-fingerprint-key")},
		{"lists all Secrets", "", u.sends("list", "secrets", r.namespace, "")},
		{"makes the keys of routes in advance", "The name is its own. Delete all keys after a takeover.", func(t *testing.T) error {
			testkit.Must(t, r.secrets.Delete(t.Context(), "keyturn-nats-routes", metav1.DeleteOptions{}))
			return creates("keyturn-nats-routes", "tls.crt")(t)
		}},
		{"reads the key of NATS's certificate", "It renews the certificate.", u.sends("get", "secrets", r.namespace, "keyturn-nats-tls")},
		{"changes NATS's certificate", "It renews the certificate.", func(t *testing.T) error {
			options := metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}
			_, err := client.CoreV1().Secrets(r.namespace).Update(t.Context(), r.get("keyturn-nats-tls"), options)
			return answered(err)
		}},
	})
}

func TestWhoeverTakesOverTheWatchersTokenReadsSecretsAndWritesNothing(t *testing.T) {
	t.Parallel()
	c := newConfined(t)
	u := taken{c.watcher}
	tryAll(t, u.onAnyCluster(c.namespace))
	tryAll(t, []attempt{
		{"makes a Secret", "", u.sends("create", "secrets", c.namespace, "a")},
		{"changes a Secret", "", u.sends("update", "secrets", c.namespace, "a")},
		{"rolls a Deployment", "", u.sends("patch", "deployments.apps", c.namespace, "web")},
		{"rolls a StatefulSet", "", u.sends("patch", "statefulsets.apps", c.namespace, "queue")},
		{"starts a CronJob's Job", "", u.sends("patch", "cronjobs.batch", c.namespace, "report")},
		{"syncs an ExternalSecret", "", u.sends("patch", "externalsecrets.external-secrets.io", c.namespace, "db")},
		{"makes a Kubernetes Event", "", u.sends("create", "events", c.namespace, "a")},
		{"takes the actuator's Lease", "", u.sends("update", "leases.coordination.k8s.io", c.system, c.system+"-actuator")},
		{"changes a namespace", "", u.sends("patch", "namespaces", "", c.namespace)},
		{"lists pods", "", u.sends("list", "pods", c.namespace, "")},
		{"lists Deployments", "", u.sends("list", "deployments.apps", c.namespace, "")},
		{"lists all Secrets", "It compares all that it watches, and can send them where its network policy allows.", u.sends("list", "secrets", "", "")},
	})
}

func TestWhoeverTakesOverTheProjectorsTokenWritesOnlyTheFieldsThatItWasGiven(t *testing.T) {
	t.Parallel()
	r := newProjectRig(t, nil)
	r.secret("db", map[string]string{"password": "one"})
	r.secret("other", map[string]string{"password": "one"})
	r.widget("main", wantsPassword)
	r.widget("plain", "")
	widgets := r.confinedTo("")
	config := configOf(t, r.namespace, projectorAccount)
	u := taken{dynamic.NewForConfigOrDie(config)}
	applies := func(spec map[string]any) func(*testing.T) error {
		return func(t *testing.T) error {
			_, err := applyTo(t.Context(), widgets, spec)
			return answered(err)
		}
	}
	auth, login := map[string]any{"password": "two"}, map[string]any{"password": "two"}
	tryAll(t, u.onAnyCluster(r.namespace))
	tryAll(t, []attempt{
		{"writes a field that it was not given", "", applies(map[string]any{"login": login})},
		{"writes another beside one that it was given", "", applies(map[string]any{"auth": auth, "login": login})},
		{"labels a resource", "", u.sends("patch", "widgets.example.org", r.namespace, "main")},
		{"changes one that wants nothing", "", u.sends("patch", "widgets.example.org", r.namespace, "plain")},
		{"writes a status", "", u.sends("patch", "widgets.example.org/status", r.namespace, "main")},
		{"makes a resource", "", u.sends("create", "widgets.example.org", r.namespace, "new")},
		{"deletes a resource", "", u.sends("delete", "widgets.example.org", r.namespace, "main")},
		{"reads a Secret that it was not given", "", u.sends("get", "secrets", r.namespace, "other")},
		{"reads one of the same name elsewhere", "", u.sends("get", "secrets", metav1.NamespaceDefault, "db")},
		{"lists Secrets", "", u.sends("list", "secrets", r.namespace, "")},
		{"lists its kind elsewhere", "", u.sends("list", "widgets.example.org", metav1.NamespaceDefault, "")},
		{"rolls a Deployment", "", u.sends("patch", "deployments.apps", r.namespace, "web")},
		{"reads a Secret that it was given", "It copies its values.", u.sends("get", "secrets", r.namespace, "db")},
		{"writes another value into a field that it was given", "The policy knows fields and no values.", applies(map[string]any{"auth": auth})},
	})
}
