//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

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

func TestAKindThatIsIgnoredIsNeitherListedNorWatched(t *testing.T) {
	play(t, func(s *scene) {
		s.options.IgnoreWorkloadKinds = []string{"cronjobs", "daemonset"}
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

func TestAtStartupTheLogSaysWhetherTheAccountIsConfined(t *testing.T) {
	leases := coordinationv1.Resource("leases")
	denied := apierrors.NewForbidden(leases, "", errors.New("ValidatingAdmissionPolicy 'a' with binding 'a' denied request: its own only"))
	const (
		confined = `level=INFO msg="an admission policy confines`
		free     = `level=WARN msg="no admission policy`
		unknown  = `level=INFO msg="not known whether`
	)
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"a policy refuses the Lease", denied, confined},
		{"any Lease may be created", nil, free},
		{"a quota is used up", apierrors.NewForbidden(leases, "", errors.New("exceeded quota")), unknown},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.options.LeaderElect, s.options.LeaseNamespace = true, "home"
			var asked []string
			s.startAfter(func(client *fake.Clientset) {
				client.PrependReactor("create", "leases", func(action k8stesting.Action) (bool, runtime.Object, error) {
					request, ok := action.(k8stesting.CreateActionImpl)
					if !ok || !slices.Contains(request.CreateOptions.DryRun, metav1.DryRunAll) {
						return false, nil, nil // the actuator's own
					}
					asked = append(asked, request.GetNamespace()+"/"+metaOf(request.GetObject()).GetName())
					return true, &coordinationv1.Lease{}, tt.err
				})
			})
			s.pass(time.Minute)
			if len(asked) != 1 || !strings.HasPrefix(asked[0], "home/") || asked[0] == "home/"+s.options.LeaseName {
				s.Errorf("asked for the Leases %q in dry runs, want one in home that is not the actuator's", asked)
			}
			for _, text := range []string{confined, free, unknown} {
				want := 0
				if text == tt.want {
					want = 1
				}
				if got := strings.Count(s.logText(), text); got != want {
					s.Errorf("%s is logged %d times, want %d", text, got, want)
				}
			}
		})
	}
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
	tests := []struct {
		name               string
		forbidden, watched []string
	}{
		{"where all may be watched", nil, nil},
		{"where it may only be read", []string{"list", "watch"}, []string{namespace}},
		{"where it may only be watched", []string{"get"}, []string{namespace}},
	}
	for _, tt := range tests {
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
	tests := []struct {
		name  string
		err   error
		rolls []string
	}{
		{"one that takes an Event", nil, []string{"web"}},
		{"one that is being deleted", terminating, nil},
		{"one without the permission", apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no")), []string{"web"}},
	}
	for _, tt := range tests {
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
