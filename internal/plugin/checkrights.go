package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mine reports whether the user may make a request.
func (p *Plugin) mine(ctx context.Context) func(right) (bool, error) {
	return func(r right) (bool, error) {
		review, err := p.access.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: r.attributes()},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return review.Status.Allowed, nil
	}
}

// ofAccount reports whether a service account may make a request.
func (i *installation) ofAccount(ctx context.Context, account string) func(right) (bool, error) {
	return func(r right) (bool, error) {
		review, err := i.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               i.userOf(account),
				Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + i.namespace, "system:authenticated"},
				ResourceAttributes: r.attributes(),
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return review.Status.Allowed, nil
	}
}

func (i *installation) userOf(account string) string {
	return "system:serviceaccount:" + i.namespace + ":" + account
}

// checkRights checks rights, given a function that reports whether each is granted.
func checkRights(about string, needed []right, allows func(right) (bool, error), fix string) finding {
	var refused []string
	for _, r := range needed {
		allowed, err := allows(r)
		switch {
		case apierrors.IsForbidden(err):
			return finding{warning, about, "not checked", "you have no permission to create subjectaccessreviews.authorization.k8s.io"}
		case err != nil:
			return finding{failure, about, err.Error(), "the API server does not answer"}
		case !allowed:
			refused = append(refused, r.String())
		}
	}
	if len(refused) > 0 {
		return finding{failure, about, "no permission to " + strings.Join(refused, ", "), fix}
	}
	return finding{good, about, "complete", ""}
}

func (p *Plugin) checkInstaller(ctx context.Context) finding {
	const rbac, admission = ".rbac.authorization.k8s.io", ".admissionregistration.k8s.io"
	var needed []right
	for _, resource := range []string{
		"namespaces", "clusterroles" + rbac, "clusterrolebindings" + rbac,
		"validatingadmissionpolicies" + admission, "validatingadmissionpolicybindings" + admission,
	} {
		needed = append(needed, right{verb: "create", resource: resource})
	}
	for _, resource := range []string{
		"roles" + rbac, "rolebindings" + rbac, "serviceaccounts", "configmaps", "deployments.apps", "statefulsets.apps",
	} {
		needed = append(needed, right{verb: "create", resource: resource, namespace: cmp.Or(p.namespace, usualNamespace)})
	}
	return checkRights("your rights", needed, p.mine(ctx), "an administrator of the cluster may install it")
}

// checkReader checks whether the user may use the commands that read.
func (p *Plugin) checkReader(ctx context.Context) finding {
	i := p.installed
	needed := []right{
		{"list", "statefulsets.apps", "", i.namespace},
		{"list", "deployments.apps", "", i.namespace},
		{"get", "configmaps", "", i.namespace},
		{"get", "leases.coordination.k8s.io", i.leaseName(), i.namespace},
	}
	if p.nats.URL == "" {
		needed = append(needed,
			right{"list", "pods", "", i.namespace},
			right{"create", "pods/portforward", "", i.namespace},
			right{"get", "secrets", readerSecret, i.namespace})
	}
	return checkRights("your rights", needed, p.mine(ctx), "see docs/reference/keyturn.md#rights")
}

// checkAccounts checks the minimum rights of the programs' accounts: to read sources, to roll and to lead.
func (i *installation) checkAccounts(ctx context.Context) []finding {
	namespaces := []string{""}
	if named := i.settings["KEYTURN_NAMESPACES"]; named != "" {
		namespaces = strings.Split(named, ",")
	}
	watcher, err := i.watcher(ctx)
	if err != nil {
		return []finding{{failure, "rights of the watcher", err.Error(), "see kubectl -n " + i.namespace + " get deployments"}}
	}
	sources := []string{"configmap", "secret"}
	if set, is := watcher.settings["KEYTURN_SOURCES"]; is {
		sources = strings.Split(set, ",")
	}
	var reads, rolls []right
	for _, namespace := range namespaces {
		for _, kind := range []string{"configmap", "secret"} {
			if slices.Contains(sources, kind) {
				reads = append(reads, right{"list", kind + "s", "", namespace})
			}
		}
		for _, verb := range []string{"list", "patch"} {
			rolls = append(rolls, right{verb, "deployments.apps", "", namespace})
		}
	}
	if i.elects() {
		rolls = append(rolls, right{"update", "leases.coordination.k8s.io", i.leaseName(), i.namespace})
	}
	const fix = "apply its Roles again: see docs/how-to/install.md"
	var found []finding
	for _, account := range []struct {
		of      *installation
		program string
		needed  []right
	}{{watcher, "watcher", reads}, {i, "actuator", rolls}} {
		name := account.of.pods.ServiceAccountName
		about := fmt.Sprintf("rights of the %s (%s)", account.program, name)
		found = append(found, checkRights(about, account.needed, i.ofAccount(ctx, name), fix))
	}
	return found
}

// watcher returns the program that watches, which is i itself if a single pod runs everything.
func (i *installation) watcher(ctx context.Context) (*installation, error) {
	if i.single {
		return i, nil
	}
	const selector = "app.kubernetes.io/name=keyturn-watcher"
	list, err := i.client.AppsV1().Deployments(i.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, right{"list", "deployments.apps", "", i.namespace}.explain(err)
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("there is no Deployment with the label %s", selector)
	}
	w := &installation{client: i.client, namespace: i.namespace, pods: &list.Items[0].Spec.Template.Spec}
	if len(w.pods.Containers) == 0 {
		return nil, fmt.Errorf("the Deployment with the label %s has no container", selector)
	}
	w.container = &w.pods.Containers[0]
	return w, w.readSettings(ctx)
}
