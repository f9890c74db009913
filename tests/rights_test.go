package tests

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
)

const (
	watcherAccount  = "keyturn-watcher"
	actuatorAccount = "keyturn-actuator"
)

// everyVerb lists the verbs of the API, including those that grant permissions.
const everyVerb = "get list watch create update patch delete deletecollection bind escalate impersonate *"

// everybodys are the rights of every authenticated user.
var everybodys = rightsOf("create", "selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectreviews.authentication.k8s.io",
	"selfsubjectrulesreviews.authorization.k8s.io")

// rights are allowed requests, as "verb resource.group".
type rights map[string]bool

func rightsOf(verbs string, resources ...string) rights {
	all := rights{}
	for verb := range strings.FieldsSeq(verbs) {
		for _, resource := range resources {
			all[verb+" "+resource] = true
		}
	}
	return all
}

func (r rights) and(more rights) rights {
	all := maps.Clone(r)
	maps.Copy(all, more)
	return all
}

func (r rights) list() []string { return slices.Sorted(maps.Keys(r)) }

var (
	sourcesRead   = rightsOf("list watch", "secrets", "configmaps")
	workloadsRoll = rightsOf("list watch patch", "deployments.apps", "statefulsets.apps", "daemonsets.apps", "cronjobs.batch").
			and(rightsOf("create", "events"))
	// namespacesWatched is for holds and windows on namespaces.
	namespacesWatched = rightsOf("list watch", "namespaces")
	// identityRead is which cluster it is.
	identityRead = rightsOf("get", "namespaces kube-system")
	// policiesListed is whether the policies that confine the actuator are there.
	policiesListed = rightsOf("list", "validatingadmissionpolicies.admissionregistration.k8s.io",
		"validatingadmissionpolicybindings.admissionregistration.k8s.io")
	leaseHeld = rightsOf("create", "leases.coordination.k8s.io").
			and(rightsOf("get update", "leases.coordination.k8s.io keyturn-actuator", "leases.coordination.k8s.io keyturn-actuator-dry-run"))
)

// clientOf has the token of a service account of the programs.
func clientOf(t *testing.T, account string) kubernetes.Interface {
	t.Helper()
	return kubernetes.NewForConfigOrDie(configOf(t, programs.SystemNamespace, account))
}

// configOf has the token of a service account of a namespace.
func configOf(t testing.TB, namespace, account string) *rest.Config {
	t.Helper()
	config, err := plane.ServiceAccountConfig(t.Context(), namespace, account)
	testkit.Must(t, err)
	config.QPS = -1
	return config
}

// rightsIn asks the API server for all rights that a service account has in a namespace. Those for one object alone have
// its name behind them.
func rightsIn(t *testing.T, account, namespace string) rights {
	t.Helper()
	return rightsOfClient(t, clientOf(t, account), namespace)
}

// rightsOfClient is rightsIn for whoever a client is.
func rightsOfClient(t *testing.T, client kubernetes.Interface, namespace string) rights {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	got, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
	testkit.Must(t, err)
	if got.Status.Incomplete {
		t.Fatalf("the API server does not tell all: %s", got.Status.EvaluationError)
	}
	found := rights{}
	for _, rule := range got.Status.ResourceRules {
		names := []string{""}
		if len(rule.ResourceNames) > 0 {
			names = rule.ResourceNames
		}
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						found[strings.TrimSpace(verb+" "+schema.GroupResource{Group: group, Resource: resource}.String()+" "+name)] = true
					}
				}
			}
		}
	}
	for _, rule := range got.Status.NonResourceRules {
		if !slices.Equal(rule.Verbs, []string{"get"}) {
			t.Errorf("it may %v the paths %v", rule.Verbs, rule.NonResourceURLs)
		}
	}
	return found
}

// may asks the API server whether a request is allowed, in a namespace or, if that is empty, in the cluster.
func may(t testing.TB, client kubernetes.Interface, namespace, right string) bool {
	t.Helper()
	fields := append(strings.Fields(right), "")
	resource := schema.ParseGroupResource(fields[1])
	plain, sub, _ := strings.Cut(resource.Resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: fields[0], Group: resource.Group, Resource: plain, Subresource: sub, Name: fields[2],
		},
	}}
	got, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	testkit.Must(t, err)
	return got.Status.Allowed
}

// It is not parallel: it takes away the rights of components, which other tests grant the same accounts.
func TestEachProgramHasExactlyTheRightsThatItNeeds(t *testing.T) {
	r := newRig(t, programs.Options{})
	withoutComponents(t, r.client)
	r.eventually("the rights of components are gone", func(context.Context) bool {
		return !slices.ContainsFunc(append(rightsIn(t, watcherAccount, r.namespace).list(), rightsIn(t, actuatorAccount, r.namespace).list()...),
			func(right string) bool {
				return strings.Contains(right, "external-secrets.io") || strings.Contains(right, "argoproj.io") || strings.Contains(right, "x-k8s.io") ||
					strings.HasSuffix(right, " jobs.batch") || strings.HasSuffix(right, " pods")
			})
	})
	tests := []struct {
		name      string
		account   string
		namespace string
		want      rights
	}{
		{"the watcher in any namespace", watcherAccount, r.namespace, sourcesRead.and(identityRead)},
		{"the watcher in its own namespace", watcherAccount, programs.SystemNamespace, sourcesRead.and(identityRead)},
		{"the actuator in any namespace", actuatorAccount, r.namespace, workloadsRoll.and(namespacesWatched).and(identityRead).and(policiesListed)},
		{
			"the actuator in its own namespace", actuatorAccount, programs.SystemNamespace,
			workloadsRoll.and(namespacesWatched).and(leaseHeld).and(identityRead).and(policiesListed),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			testkit.WantEqual(t, "rights", tt.want.and(everybodys).list(), rightsIn(t, tt.account, tt.namespace).list())
		})
	}
}

// This asks one by one, as kubectl auth can-i does, for the rights that matter most. It is not parallel: other tests grant the same accounts more.
func TestNeitherProgramMayDoWhatWouldGiveItMore(t *testing.T) {
	r := newRig(t, programs.Options{})
	workloads := []string{
		"deployments.apps", "statefulsets.apps", "daemonsets.apps", "replicasets.apps", "cronjobs.batch", "jobs.batch", "pods",
		"replicationcontrollers", "deployments/scale.apps",
	}
	both := []rights{
		rightsOf("create", "pods", "jobs.batch", "pods/exec", "pods/attach", "pods/portforward", "serviceaccounts/token", "serviceaccounts"),
		rightsOf("get", "secrets", "configmaps", "pods/log", "nodes/proxy"),
		rightsOf("create update patch bind escalate *", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
			"clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"),
		rightsOf("impersonate", "users", "groups", "serviceaccounts"),
		rightsOf("*", "*", "*.*"),
	}
	tests := []struct {
		account string
		does    rights
		never   []rights
	}{
		{watcherAccount, sourcesRead, append(both,
			rightsOf("create update patch delete deletecollection *", workloads...), rightsOf("create update patch delete *", "secrets", "configmaps"))},
		{actuatorAccount, workloadsRoll.and(namespacesWatched), append(both,
			rightsOf("create update delete deletecollection *", workloads...), rightsOf(everyVerb, "secrets", "configmaps"))},
	}
	for _, tt := range tests {
		client := clientOf(t, tt.account)
		for _, namespace := range []string{r.namespace, programs.SystemNamespace, metav1.NamespaceAll} {
			for right := range tt.does {
				if !may(t, client, namespace, right) {
					t.Errorf("%s may not %s in namespace %q", tt.account, right, namespace)
				}
			}
			for _, forbidden := range tt.never {
				for right := range forbidden {
					if may(t, client, namespace, right) {
						t.Errorf("%s may %s in namespace %q", tt.account, right, namespace)
					}
				}
			}
		}
	}
	for _, account := range []string{watcherAccount, actuatorAccount} {
		lists := account == actuatorAccount
		for right, want := range map[string]bool{"get namespaces kube-system": true, "get namespaces default": false, "list namespaces": lists} {
			if got := may(t, clientOf(t, account), metav1.NamespaceAll, right); got != want {
				t.Errorf("%s may %s: got %t, want %t", account, right, got, want)
			}
		}
	}
	for right, want := range map[string]bool{
		"update leases.coordination.k8s.io keyturn-actuator": true,
		"update leases.coordination.k8s.io kube-scheduler":   false,
		"delete leases.coordination.k8s.io keyturn-actuator": false,
	} {
		if got := may(t, clientOf(t, actuatorAccount), programs.SystemNamespace, right); got != want {
			t.Errorf("%s may %s: got %t, want %t", actuatorAccount, right, got, want)
		}
	}
}

// It is not parallel: it looks at all that the accounts ask for, which other tests use, too.
func TestTheProgramsAskForNothingThatTheyMayNotHave(t *testing.T) {
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms", "--leader-elect"}})
	r.secret("db", map[string]string{"password": "one"})
	r.configMap("app", map[string]string{"level": "info"})
	web := r.reading("web", "db", 1, nil)
	programs.ReadConfigMap(&web.Spec.Template, "app")
	r.deploy(web)
	begin := auditEnd(t)
	r.start()
	r.eventually("the actuator says that it is confined", func(context.Context) bool {
		return strings.Contains(r.actuator.Output(), "an admission policy confines this account")
	})
	r.secret("db", map[string]string{"password": "two"})
	r.outcomeOf("web", events.VerbCompleted)
	r.eventually("the Kubernetes Event of the rollout's end is there", func(context.Context) bool {
		return len(r.kubeEvents("web", "RolloutCompleted")) > 0
	})
	for _, stop := range []*programs.Program{r.watcher, r.actuator} {
		if err := stop.Stop(patience); err != nil {
			t.Fatalf("stopping the %s: %v", stop.Name(), err)
		}
	}
	entries := auditSince(t, begin)
	// A program does not have to use all of its role.
	tests := []struct {
		account string
		allowed rights
		must    rights
	}{
		{watcherAccount, sourcesRead.and(rightsOf("get", "namespaces")), rightsOf("watch", "secrets", "configmaps").and(rightsOf("get", "namespaces"))},
		{
			actuatorAccount,
			workloadsRoll.and(rightsOf("create get update", "leases.coordination.k8s.io")).and(rightsOf("get list watch", "namespaces")).and(policiesListed),
			rightsOf("patch", "deployments.apps").and(rightsOf("create", "events")).and(rightsOf("update", "leases.coordination.k8s.io")),
		},
	}
	for _, tt := range tests {
		used := rights{}
		for _, entry := range testbed.Requests(entries, testbed.ServiceAccountUser(programs.SystemNamespace, tt.account)) {
			resource := schema.GroupResource{Group: entry.Group, Resource: entry.Resource}
			used[entry.Verb+" "+resource.String()] = true
			// What its namespace says about holds and windows: it is watched by name where it may not be got.
			itself := entry.URI == "/api/v1/namespaces/"+r.namespace
			byName := entry.Resource == "namespaces" && strings.Contains(entry.URI, "fieldSelector=metadata.name%3D"+r.namespace+"&")
			// 404 and 409 are answers of a Lease that is made for the first time. An API server that has no time says so by a 504.
			if entry.Code == 401 || entry.Code == 403 && !itself || entry.Code >= 500 && entry.Code != http.StatusGatewayTimeout {
				t.Errorf("%s: %s %s: status %d", tt.account, entry.Verb, entry.URI, entry.Code)
			}
			identity := entry.URI == "/api/v1/namespaces/"+metav1.NamespaceSystem || entry.Group == "admissionregistration.k8s.io"
			if outside := entry.Namespace != r.namespace && (entry.Namespace != programs.SystemNamespace || entry.Resource != "leases"); outside && !identity && !itself && !byName {
				t.Errorf("%s: %s %s: outside of its namespace", tt.account, entry.Verb, entry.URI)
			}
		}
		for right := range used {
			if !tt.allowed[right] {
				t.Errorf("%s used %s, which is not in its role", tt.account, right)
			}
		}
		for right := range tt.must {
			if !used[right] {
				t.Errorf("%s did not use %s: was it another that did the work? It used %s", tt.account, right, fmt.Sprint(used.list()))
			}
		}
	}
}
