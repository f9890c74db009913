//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

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
