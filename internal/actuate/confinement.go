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

// These are the intervals between checks of the admission policies. A binding can be deleted at any time, so the checks go on after a success.
const (
	confinementPeriod = 10 * time.Minute
	unconfinedPeriod  = time.Minute
)

// everyPolicy is the entry of the missing policies if nothing confines the account.
const everyPolicy = "all of deploy/admission"

// watchConfinement checks periodically whether admission policies confine this account. It keeps the result for a gauge, and logs each change.
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
		a.log.InfoContext(ctx, "cannot determine whether an admission policy confines this account", "err", err)
	case slices.Contains(missing, everyPolicy):
		a.log.WarnContext(ctx, "no admission policy confines this account; it may change any field of a workload",
			"want", "deploy/admission, on Kubernetes 1.30 or newer")
	case len(missing) > 0:
		a.log.WarnContext(ctx, "admission policies confine this account in part", "missing", missing)
	default:
		a.log.InfoContext(ctx, "an admission policy confines this account to what Keyturn writes")
	}
}

// missingPolicies returns the problems of this installation's admission policies. The first check needs no permission: the policy for the account
// refuses every Lease except the actuator's own, so a dry run that creates another one must be refused. Without permission to list policies, this is
// the only check.
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
		return nil, fmt.Errorf("creating another lease in a dry run: %w", err)
	}
	policies, err := kube.Confinement{Namespace: a.options.LeaseNamespace, Resources: a.kinds.Resources()}.Policies(ctx, a.options.Client)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checking admission policies: %w", err)
	}
	var missing []string
	for _, policy := range policies {
		if policy.Problem != "" {
			missing = append(missing, policy.Name+" "+policy.Problem)
		}
	}
	return missing, nil
}
