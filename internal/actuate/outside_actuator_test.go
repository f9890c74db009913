//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAKindThatIsNotChosenIsNeitherListedNorWatched(t *testing.T) {
	play(t, func(s *scene) {
		s.options.WorkloadKinds = []string{"deployments", "statefulset"}
		for _, name := range []string{"web", "statefulset/web", "daemonset/web", "cronjob/web"} {
			s.workload(name, auto, reads("secret/db"))
		}
		s.begin("secret/db")
		for resource, want := range map[string]bool{"deployments": true, "statefulsets": true, "daemonsets": false, "cronjobs": false} {
			for _, verb := range []string{"list", "watch"} {
				if got := len(s.requests(verb, resource)) > 0; got != want {
					s.Errorf("there are requests to %s %s: %t, want %t", verb, resource, got, want)
				}
			}
		}
		s.rotate("two", "web", "statefulset/web")
	})
}

// policies are what the chart makes of deploy/admission in the namespace team: the resources of each policy, and the policy of each binding.
type policies struct {
	resources map[string][]string
	bindings  map[string]string
}

const actuatorPolicy, protectedPolicy, keysPolicy = "team-actuator", "team-protected", "team-keys"

func allPolicies() policies {
	workloads := []string{"deployments", "statefulsets", "daemonsets", "cronjobs"}
	return policies{
		resources: map[string][]string{actuatorPolicy: workloads, protectedPolicy: workloads, keysPolicy: nil},
		bindings: map[string]string{
			actuatorPolicy: actuatorPolicy, protectedPolicy: protectedPolicy, protectedPolicy + "-own": protectedPolicy,
			protectedPolicy + "-by-label": protectedPolicy, keysPolicy: keysPolicy,
		},
	}
}

// lists returns what the API server answers to somebody who lists them.
func (p policies) lists() (*admissionv1.ValidatingAdmissionPolicyList, *admissionv1.ValidatingAdmissionPolicyBindingList) {
	all, bindings := new(admissionv1.ValidatingAdmissionPolicyList), new(admissionv1.ValidatingAdmissionPolicyBindingList)
	for name, resources := range p.resources {
		rule := admissionv1.RuleWithOperations{Rule: admissionv1.Rule{APIGroups: []string{"apps", "batch"}, Resources: resources}}
		all.Items = append(all.Items, admissionv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				MatchConditions: []admissionv1.MatchCondition{{Name: "is-an-account", Expression: "'system:serviceaccount:team:one'"}},
				MatchConstraints: &admissionv1.MatchResources{
					ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: rule}},
				},
			},
		})
	}
	for name, policy := range p.bindings {
		bindings.Items = append(bindings.Items, admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: policy, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		})
	}
	return all, bindings
}

// startBehind starts an actuator behind policies, given what the API server says to a Lease that is not the actuator's, and to a list of policies. It
// returns the names of such Leases.
func (s *scene) startBehind(p policies, lease, listing error) (asked *[]string) {
	s.Helper()
	asked = new([]string)
	s.options.LeaderElect, s.options.LeaseNamespace = true, "team"
	s.startAfter(func(client *fake.Clientset) {
		client.PrependReactor("create", "leases", func(action k8stesting.Action) (bool, runtime.Object, error) {
			request, ok := action.(k8stesting.CreateActionImpl)
			if !ok || !slices.Contains(request.CreateOptions.DryRun, metav1.DryRunAll) {
				return false, nil, nil // the actuator's own
			}
			*asked = append(*asked, request.GetNamespace()+"/"+metaOf(request.GetObject()).GetName())
			return true, &coordinationv1.Lease{}, lease
		})
		client.PrependReactor("list", "validatingadmissionpolicies", func(k8stesting.Action) (bool, runtime.Object, error) {
			listed, _ := p.lists()
			return true, listed, listing
		})
		client.PrependReactor("list", "validatingadmissionpolicybindings", func(k8stesting.Action) (bool, runtime.Object, error) {
			_, bound := p.lists()
			return true, bound, listing
		})
	})
	return asked
}

// deniedLease is the answer to a Lease that is not the actuator's where its policy is bound.
func deniedLease() error {
	return apierrors.NewForbidden(coordinationv1.Resource("leases"), "", errors.New(
		"ValidatingAdmissionPolicy 'team-actuator' with binding 'team-actuator' denied request: its own only"))
}

func TestAnActuatorKnowsWhichPoliciesConfineItsAccount(t *testing.T) {
	leases, lists := coordinationv1.Resource("leases"), admissionv1.Resource("validatingadmissionpolicies")
	const (
		confined = `level=INFO msg="an admission policy confines`
		partly   = `level=WARN msg="admission policies confine this account in part"`
		free     = `level=WARN msg="no admission policy`
		unknown  = `level=INFO msg="cannot determine whether`
	)
	for _, tt := range []struct {
		name string
		// answer and listing are what the API server says to a Lease that is not the actuator's, and to a list of policies.
		answer, listing error
		change          func(policies)
		// says is in the log, once, and missing with it.
		says, missing string
		// gauge is less than 0 if it is not there.
		gauge int64
	}{
		{"all policies are bound", deniedLease(), nil, nil, confined, "", 0},
		{"any Lease may be created", nil, nil, nil, free, "", 1},
		{"a quota is used up", apierrors.NewForbidden(leases, "", errors.New("exceeded quota")), nil, nil, unknown, "", -1},
		{"policies may not be listed", deniedLease(), apierrors.NewForbidden(lists, "", nil), nil, confined, "", 0},
		{"policies cannot be listed", deniedLease(), apierrors.NewServerTimeout(lists, "list", 1), nil, unknown, "", -1},
		{
			"a binding is to another policy", deniedLease(), nil, func(p policies) { p.bindings["team-protected-own"] = "audit" }, partly,
			"[team-protected lacks the binding team-protected-own that denies]", 1,
		},
		{
			"no policy is for a kind that is rolled", deniedLease(), nil,
			func(p policies) {
				p.resources[actuatorPolicy] = []string{"deployments", "statefulsets", "daemonsets"}
			}, partly, "[for cronjobs.batch is missing]", 1,
		},
	} {
		playOf(t, tt.name, func(s *scene) {
			seen, objects := s.instrument(), allPolicies()
			if tt.change != nil {
				tt.change(objects)
			}
			asked := s.startBehind(objects, tt.answer, tt.listing)
			s.pass(24*time.Minute + 30*time.Second)
			want := 25
			if tt.gauge == 0 {
				want = 3
			}
			if got := *asked; len(got) != want || !strings.HasPrefix(got[0], "team/") || got[0] == "team/"+s.options.LeaseName {
				s.Errorf("asked for the Leases %q in dry runs, want %d in team that are not the actuator's", got, want)
			}
			for _, text := range []string{confined, partly, free, unknown} {
				want := 0
				if text == tt.says {
					want = 1
				}
				if got := s.logged(text); got != want {
					s.Errorf("%s is logged %d times, want %d", text, got, want)
				}
			}
			if s.logged(tt.missing) == 0 {
				s.Errorf("the log does not name %s", tt.missing)
			}
			if got, ok := seen.measurements().value("keyturn.unconfined", "", ""); ok != (tt.gauge >= 0) || ok && got != tt.gauge {
				s.Errorf("keyturn.unconfined is %d, there: %t, want %d", got, ok, tt.gauge)
			}
		})
	}
}

func TestAnActuatorNoticesThatABindingIsDeleted(t *testing.T) {
	play(t, func(s *scene) {
		seen, objects := s.instrument(), allPolicies()
		s.startBehind(objects, deniedLease(), nil)
		s.pass(time.Minute)
		seen.want("keyturn.unconfined", "", "", 0)
		delete(objects.bindings, protectedPolicy)
		s.pass(10 * time.Minute)
		seen.want("keyturn.unconfined", "", "", 1)
		objects.bindings[protectedPolicy] = protectedPolicy
		s.pass(10 * time.Minute)
		seen.want("keyturn.unconfined", "", "", 0)
	})
}

// forbidNamespaces returns what has the API server refuse requests about namespaces, for startAfter.
func forbidNamespaces(verbs ...string) func(*fake.Clientset) {
	refusal := apierrors.NewForbidden(corev1.Resource("namespaces"), "", nil)
	return func(client *fake.Clientset) {
		for _, verb := range verbs {
			client.PrependReactor(verb, "namespaces", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
		}
		if slices.Contains(verbs, "watch") {
			client.PrependWatchReactor("namespaces", func(k8stesting.Action) (bool, watch.Interface, error) { return true, nil, refusal })
		}
	}
}

func TestAHoldOnANamespaceHoldsItsWorkloadsUntilItIsTakenOff(t *testing.T) {
	for _, tt := range []struct {
		name               string
		forbidden, watched []string
	}{
		{"where all may be watched", nil, nil},
		{"where it may only be read", []string{"list", "watch"}, []string{namespace}},
		{"where it may only be watched", []string{"get"}, []string{namespace}},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.options.Namespaces = tt.watched
			s.workload("web", auto, reads("secret/db"))
			s.workload("now", auto, reads("secret/db"), annotated(workload.AnnotationRollNow, "1"))
			s.namespaceSays(namespace, map[string]string{events.AnnotationHold: "moving"})
			s.observe("secret/db")
			s.startAfter(forbidNamespaces(tt.forbidden...))
			s.pass(time.Minute)
			s.rotate("two", "now")
			s.wantTold("now started content-changed", "now completed rolled-out", "web held on-hold")
			s.wantLast("web", "held on-hold", "somebody has put the workload on hold: namespace shop: moving")
			s.pass(time.Minute)
			s.wantRolls()
			s.namespaceSays(namespace, nil)
			s.pass(10 * time.Second)
			s.wantRolls("web")
		})
	}
}

// A Secret that the pods can start without is deleted, maybe with the whole namespace. The API server says so when it is to create a Kubernetes Event.
func TestOnlyANamespaceThatTheAPIServerSaysIsBeingDeletedIsTerminating(t *testing.T) {
	terminating := apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, tt := range []struct {
		name  string
		err   error
		rolls []string
	}{
		{"one that takes an Event", nil, []string{"web"}},
		{"one that is being deleted", terminating, nil},
		{"one without the permission", apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no")), []string{"web"}},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.options.RollOnDelete = true
			s.workload("web", auto, reads("secret/db?"))
			s.observe("secret/db")
			s.start()
			s.intercept("create", "events", func(k8stesting.Action) (bool, runtime.Object, error) { return tt.err != nil, nil, tt.err })
			s.pass(time.Minute)
			s.erase("secret/db")
			s.pass(time.Minute)
			s.wantRolls(tt.rolls...)
			if tt.rolls == nil {
				s.wantTold("web failed patch-denied")
				return
			}
			s.wantTold("web started deleted", "web completed rolled-out")
		})
	}
}
