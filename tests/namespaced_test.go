package tests

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// teamA is the namespace that deploy/namespaced is written for.
const teamA = "team-a"

// It is not parallel: it takes away the cluster-wide rights that the programs of other tests need.
func TestProgramsForOneNamespaceHaveNoRightInAnyOther(t *testing.T) {
	other := plane.Namespace(t)
	client := kubernetes.NewForConfigOrDie(plane.Config())
	withoutClusterRoles(t, client)
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: teamA}}, metav1.CreateOptions{})
	testkit.Must(t, err)
	t.Cleanup(func() {
		if err := client.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), teamA, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	r := newRigIn(t, teamA, programs.Options{RBAC: "../deploy/namespaced/rbac.yaml", ActuatorArgs: []string{"--settle", "50ms"}})
	for account, want := range map[string]rights{watcherAccount: sourcesRead, actuatorAccount: workloadsRoll.and(rightsOf("get", "namespaces"))} {
		r.eventually("the cluster-wide rights of "+account+" are gone", func(context.Context) bool {
			return maps.Equal(rightsIn(t, account, other), everybodys)
		})
		own := want.and(everybodys)
		r.eventually("the rights of "+account+" in its namespace are those that it is to have", func(context.Context) bool {
			return maps.Equal(rightsIn(t, account, teamA), own)
		}, func() string { return "-want +got:\n" + cmp.Diff(own.list(), rightsIn(t, account, teamA).list()) })
		for right := range want {
			if may(t, clientOf(t, account), metav1.NamespaceAll, right) {
				t.Errorf("%s may %s in the cluster", account, right)
			}
		}
	}
	t.Run("a Secret of another namespace cannot be read", func(t *testing.T) {
		secrets := clientOf(t, watcherAccount).CoreV1()
		if _, err := secrets.Secrets(other).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("listing: got %v, want that it is forbidden", err)
		}
		if _, err := secrets.Secrets(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("listing all namespaces: got %v, want that it is forbidden", err)
		}
		if _, err := secrets.Secrets(teamA).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("listing its own namespace: %v", err)
		}
	})

	begin := auditEnd(t)
	r.secret("db", map[string]string{"password": "one"})
	r.deploy(r.reading("web", "db", 1, nil))
	r.start()
	before := r.generations()
	r.secret("db", map[string]string{"password": "two"})
	r.outcomeOf("web", events.VerbCompleted)
	if got, want := r.generations()["web"], before["web"]+1; got != want {
		t.Errorf("generation of web: got %d, want %d", got, want)
	}
	entries := auditSince(t, begin)
	for _, entry := range testbed.Requests(entries, "") {
		// Which cluster it is they ask for once, and which policies there are, and go on without an answer.
		asksForTheCluster := entry.Verb == "get" && entry.URI == "/api/v1/namespaces/"+metav1.NamespaceSystem ||
			entry.Group == "admissionregistration.k8s.io"
		if strings.HasPrefix(entry.User, testbed.ServiceAccountUser(programs.SystemNamespace, "")) && entry.Code == 403 && !asksForTheCluster {
			t.Errorf("%s: %s %s was denied", entry.User, entry.Verb, entry.URI)
		}
	}
}

// withoutClusterRoles takes the cluster-wide rights of deploy/base away for the time of a test.
func withoutClusterRoles(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	withoutComponents(t, client)
	for _, name := range []string{watcherAccount, actuatorAccount} {
		err := client.RbacV1().ClusterRoleBindings().Delete(t.Context(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := plane.ApplyKinds(context.WithoutCancel(t.Context()), testbed.RBACKinds(), "../deploy/base/rbac.yaml"); err != nil {
			t.Error(err)
		}
	})
}

// withoutComponents removes the permissions of deploy/components. A test that needs them grants them again.
func withoutComponents(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	for _, name := range []string{
		watcherAccount + "-secret-stores", actuatorAccount + "-secret-stores",
		watcherAccount + "-secret-provider-classes", actuatorAccount + "-argo-rollouts", actuatorAccount + "-jobs",
		actuatorAccount + "-reload-in-place",
	} {
		err := client.RbacV1().ClusterRoleBindings().Delete(t.Context(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}
