package actuate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/kube"
)

// The actuator asks again after so long whether its account is confined, because a binding can be deleted at any time, and sooner while it is not.
const (
	confinementPeriod = 10 * time.Minute
	unconfinedPeriod  = time.Minute
)

// everyPolicy is what is missing if nothing confines the account.
const everyPolicy = "all of deploy/admission"

// watchConfinement asks for the policies that confine this account, for a gauge, and logs what is not as it was.
func (a *Actuator) watchConfinement(ctx context.Context) {
	logged := ""
	for {
		missing, err := a.missingPolicies(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			a.unconfined.Store(&missing)
		}
		if answer := fmt.Sprint(missing, err); answer != logged {
			logged = answer
			a.logConfinement(ctx, missing, err)
		}
		period := confinementPeriod
		if err != nil || len(missing) > 0 {
			period = unconfinedPeriod
		}
		if !kube.Sleep(ctx, period) {
			return
		}
	}
}

func (a *Actuator) logConfinement(ctx context.Context, missing []string, err error) {
	switch {
	case err != nil:
		a.log.InfoContext(ctx, "not known whether an admission policy confines this account", "err", err)
	case slices.Contains(missing, everyPolicy):
		a.log.WarnContext(ctx, "no admission policy confines this account; it may change any field of a workload",
			"want", "deploy/admission, on Kubernetes 1.30 or newer")
	case len(missing) > 0:
		a.log.WarnContext(ctx, "admission policies confine this account in part", "missing", missing)
	default:
		a.log.InfoContext(ctx, "an admission policy confines this account to what Keyturn writes")
	}
}

// missingPolicies returns what is wrong with the admission policies of this installation. The first question takes no permission and no object: the
// policy of the account refuses any Lease but the actuator's own, so the API server is asked to create another one, in a dry run. Without permission
// to list policies, that is all that is known.
func (a *Actuator) missingPolicies(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, kube.PatchTimeout)
	defer cancel()
	question := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "keyturn-is-it-confined", Namespace: a.options.LeaseNamespace}}
	leases := a.options.Client.CoordinationV1().Leases(question.Namespace)
	_, err := leases.Create(ctx, question, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return []string{everyPolicy}, nil
	}
	if !kube.IsDenied(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		return nil, fmt.Errorf("asking for another lease: %w", err)
	}
	policies, err := kube.Confinement{Namespace: a.options.LeaseNamespace, Resources: a.kinds.Resources()}.Policies(ctx, a.options.Client)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking for admission policies: %w", err)
	}
	var missing []string
	for _, policy := range policies {
		if policy.Problem != "" {
			missing = append(missing, policy.Name+" "+policy.Problem)
		}
	}
	return missing, nil
}
