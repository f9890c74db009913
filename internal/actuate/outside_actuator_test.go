//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

func TestAnActuatorThatMayNotPatchTriesUntilItMay(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.refuse("web", apierrors.NewForbidden(appsv1.Resource("deployments"), "web",
			errors.New(`User "x" cannot patch resource "deployments" in API group "apps"`)))
		s.set("secret/db", "password", "two")
		s.pass(time.Hour)
		if s.logged("patch failed; retrying") == 0 {
			s.Error("it does not say so")
		}
		s.wantTold()
		s.refuse("web", nil)
		s.pass(70 * time.Second)
		s.wantRolls("web")
		s.wantTold("web started content-changed", "web completed rolled-out")
	})
}

func TestAnActuatorSaysWhichRightIsMissing(t *testing.T) {
	const want = "no permission to list and watch cronjobs in namespace shop; grant it as in deploy/base/rbac.yaml: "
	play(t, func(s *scene) {
		var granted atomic.Bool
		s.options.Namespaces = []string{namespace}
		s.beginWeb().stop() // Without a record it could not know what changes before it knows the workloads.
		s.wantWrites("web recorded")
		actuator := s.startAfter(func(client *fake.Clientset) {
			client.PrependReactor("list", "cronjobs", func(k8stesting.Action) (bool, runtime.Object, error) {
				return !granted.Load(), nil, apierrors.NewForbidden(batchv1.Resource("cronjobs"), "", errors.New("no"))
			})
		})
		s.set("secret/db", "password", "two")
		s.pass(time.Minute)
		if err := actuator.Ready(); err == nil || !strings.Contains(err.Error(), want) || !apierrors.IsForbidden(err) {
			s.Errorf("its readiness is %v, want what is missing", err)
		}
		s.wantWrites()
		granted.Store(true)
		s.pass(2 * time.Minute)
		if err := actuator.Ready(); err != nil {
			s.Errorf("with the permission it is not ready: %v", err)
		}
		s.wantRolls("web")
	})
}

func TestAChangeRollsWhoReadsIt(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.workload("other", auto, reads("secret/other"))
		s.begin("secret/db", "secret/other")
		s.wantRolls()
		s.rotate("two", "web")
		s.wantTold("web started content-changed", "web completed rolled-out")
		s.restartFor(time.Hour)
		s.wantNothing()
	})
}

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
	invalid := denied.ErrStatus.DeepCopy()
	invalid.Reason, invalid.Code = metav1.StatusReasonInvalid, 422
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
		{"a policy refuses the Lease as invalid", &apierrors.StatusError{ErrStatus: *invalid}, confined},
		{"any Lease may be created", nil, free},
		{"there is no permission", apierrors.NewForbidden(leases, "", errors.New(`User "a" cannot create resource "leases"`)), unknown},
		{"a quota is used up", apierrors.NewForbidden(leases, "", errors.New("exceeded quota")), unknown},
		{"the API server is overloaded", apierrors.NewTooManyRequests("later", 1), unknown},
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
