package install

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/rights"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

// makeAccounts makes the accounts of the programs, and waits until they have what they are given: the API server learns of a role by and by, and a
// program asks only once which cluster it is in.
func (b *bench) makeAccounts(grants []rights.Grant) {
	b.Helper()
	for _, account := range []string{rights.WatcherAccount, rights.ActuatorAccount} {
		object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
		if _, err := b.kube.CoreV1().ServiceAccounts(b.home).Create(b.Context(), object, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	for number, given := range grants {
		b.give(given, fmt.Sprintf("%s-%s-%d", b.namespace, given.Account, number))
	}
	permissions := rights.PermissionsOf(grants)
	testkit.Await(b.T, "the API server knows the rights", func(ctx context.Context) bool {
		return !slices.ContainsFunc(permissions, func(p rights.Permission) bool { return !b.may(ctx, p) })
	})
}

// standIn returns the namespace of the bench that stands for one of a manifest: home for that of Keyturn, and that of the workloads for one that is
// served. It is empty for what is in no namespace.
func (b *bench) standIn(namespace string) string {
	switch namespace {
	case "":
		return ""
	case programs.SystemNamespace:
		return b.home
	}
	return b.namespace
}

// give gives an account of the test what a manifest does, by a role of a name.
func (b *bench) give(given rights.Grant, name string) {
	b.Helper()
	meta, rbac, ctx := metav1.ObjectMeta{Name: name}, b.kube.RbacV1(), b.Context()
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.home, Name: given.Account}}
	var problems [2]error
	if given.Namespace == "" {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		_, problems[0] = rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: given.Rules}, metav1.CreateOptions{})
		_, problems[1] = rbac.ClusterRoleBindings().Create(ctx,
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	} else {
		namespace, ref := b.standIn(given.Namespace), rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
		_, problems[0] = rbac.Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: given.Rules}, metav1.CreateOptions{})
		_, problems[1] = rbac.RoleBindings(namespace).Create(ctx,
			&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	}
	testkit.Must(b, errors.Join(problems[:]...))
}

// may reports whether the API server lets an account of the test use a permission.
func (b *bench) may(ctx context.Context, p rights.Permission) bool {
	resource, subresource, _ := strings.Cut(p.Resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: testbed.ServiceAccountUser(b.home, p.Account),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: b.standIn(p.Namespace), Verb: p.Verb, Group: p.Group, Resource: resource, Subresource: subresource, Name: p.Name,
		},
	}}
	answer, err := b.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return err == nil && answer.Status.Allowed
}

// confine applies the admission policy for the actuator of the test, and waits until it is in force.
func (b *bench) confine() {
	b.Helper()
	policy, err := programs.ReadPolicy("../../deploy", "")
	testkit.Must(b, err)
	apply(b.T, strings.ReplaceAll(policy, programs.SystemNamespace, b.home))
	b.Cleanup(func() {
		policies, ctx := b.kube.AdmissionregistrationV1(), context.WithoutCancel(b.Context())
		if err := policies.ValidatingAdmissionPolicyBindings().Delete(ctx, b.home+"-actuator", metav1.DeleteOptions{}); err != nil {
			b.Error(err)
		}
		if err := policies.ValidatingAdmissionPolicies().Delete(ctx, b.home+"-actuator", metav1.DeleteOptions{}); err != nil {
			b.Error(err)
		}
	})
	config, err := plane.ServiceAccountConfig(b.Context(), b.home, rights.ActuatorAccount)
	testkit.Must(b, err)
	testkit.Must(b, programs.AwaitPolicy(b.Context(), kubernetes.NewForConfigOrDie(config), b.home))
}

// requests are those that the accounts have made since the scene was prepared.
func (b *bench) requests() []testbed.AuditEntry {
	b.Helper()
	entries, end, err := plane.AuditSince(b.read)
	testkit.Must(b, err)
	b.read = end
	for _, entry := range entries {
		if strings.HasPrefix(entry.User, testbed.ServiceAccountUser(b.home, "")) {
			b.seen = append(b.seen, entry)
		}
	}
	return b.seen
}

// uses waits until each of the permissions was used by the account that has it.
func (b *bench) uses(permissions []rights.Permission) {
	b.Helper()
	left := slices.Clone(permissions)
	testkit.Await(b.T, "each right is used", func(context.Context) bool {
		requests := b.requests()
		left = slices.DeleteFunc(left, func(p rights.Permission) bool {
			return slices.ContainsFunc(requests, func(entry testbed.AuditEntry) bool {
				return p.IsUsedBy(entry, testbed.ServiceAccountUser(b.home, p.Account), b.standIn(p.Namespace))
			})
		})
		return len(left) == 0
	}, func() string { return "rights that no program has used:\n" + rights.Tell(left) })
}

// isRefused reports whether the API server has refused an account's request, for which a right is needed.
func (b *bench) isRefused(account, needed string) bool {
	b.Helper()
	return slices.ContainsFunc(b.requests(), func(entry testbed.AuditEntry) bool {
		return entry.User == testbed.ServiceAccountUser(b.home, account) && entry.Code == http.StatusForbidden &&
			rights.Right(entry.Verb, entry.Group, entry.Resource) == needed
	})
}
