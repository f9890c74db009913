package actuate

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

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
		t.Run(tt.name, func(t *testing.T) {
			client, log := fake.NewClientset(), bytes.Buffer{}
			client.PrependReactor("create", "leases", func(action k8stesting.Action) (bool, runtime.Object, error) {
				asked := action.(k8stesting.CreateActionImpl)
				if name := asked.Object.(*coordinationv1.Lease).Name; name == DefaultOptions().LeaseName || asked.Namespace != "home" {
					t.Errorf("asked for the Lease %s/%s, want one in home that is not the actuator's", asked.Namespace, name)
				}
				if dryRun := asked.CreateOptions.DryRun; len(dryRun) != 1 || dryRun[0] != metav1.DryRunAll {
					t.Errorf("dry run: got %v", dryRun)
				}
				return true, &coordinationv1.Lease{}, tt.err
			})
			reportConfinement(t.Context(), client, "home", slog.New(slog.NewTextHandler(&log, nil)))
			if got := log.String(); !strings.Contains(got, tt.want) || strings.Count(got, "\n") != 1 {
				t.Errorf("got %q, want one line with %q", got, tt.want)
			}
		})
	}
}
