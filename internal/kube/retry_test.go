package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/testkit"
)

// notAsTested is the answer to a JSON patch in which a test fails.
func notAsTested() error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing value failed", 0, false)
}

// policyDenial is the answer to a patch that a ValidatingAdmissionPolicy denies.
func policyDenial() error {
	answer := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("policy denied request: no"))
	answer.ErrStatus.Reason, answer.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
	return answer
}

func TestAPatchOfWhatHasChangedIsToldFromARefusal(t *testing.T) {
	if err := fmt.Errorf("patching: %w", notAsTested()); !HasChanged(err) {
		t.Error("a test that failed is not recognized")
	}
	for _, err := range []error{
		nil, policyDenial(), errors.New(notApplied), apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "web", field.ErrorList{}),
		apierrors.NewBadRequest("no"),
	} {
		if HasChanged(err) {
			t.Errorf("%v: is taken for a test that failed", err)
		}
	}
}

func TestARefusalIsToldFromAFailure(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	forbidden := func(text string) error { return apierrors.NewForbidden(deployments, "web", errors.New(text)) }
	answer := func(code int32, reason metav1.StatusReason, text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: text}}
	}
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"an admission webhook says no", forbidden(`admission webhook "policy" denied the request: no restarts today`), true},
		{"the patch makes an object that is not valid", apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "web", field.ErrorList{}), true},
		{"an admission policy calls it invalid", policyDenial(), true},
		{
			"an admission policy calls it unauthorized",
			answer(http.StatusUnauthorized, metav1.StatusReasonUnauthorized,
				`deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'freeze' with binding 'freeze' denied request: not before Monday`),
			true,
		},
		{
			"an admission webhook has a status of its own",
			answer(http.StatusConflict, "", `admission webhook "policy" denied the request: not before Monday`), true,
		},
		{"an admission webhook does not answer", apierrors.NewInternalError(errors.New(`failed calling webhook "policy": connection refused`)), false},
		{"a token has expired", apierrors.NewUnauthorized("Unauthorized"), false},
		{"the object is not as the patch says", notAsTested(), false},
		{"the patch is not understood", apierrors.NewBadRequest("no"), true},
		{"a wrapped refusal is one", fmt.Errorf("patching: %w", apierrors.NewBadRequest("no")), true},
		{
			"so can the one to create a job",
			forbidden(`User "system:serviceaccount:keyturn-system:keyturn-actuator" cannot create resource "jobs" in API group "batch"`), false,
		},
		{
			"a right that is missing can be granted",
			forbidden(`User "system:serviceaccount:keyturn-system:keyturn-actuator" cannot patch resource "deployments" in API group "apps"`), false,
		},
		{"the workload is gone", apierrors.NewNotFound(deployments, "web"), false},
		{"nobody answers", errors.New("connection refused"), false},
	} {
		t.Run(test.name, func(t *testing.T) { testkit.WantEqual(t, "denied", test.want, IsDenied(test.err)) })
	}
}

func TestAPatchIsTriedLaterAndLaterAndADeniedOneRarelyInTheEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		backoff wait.Backoff
		seconds []int
	}{
		"a failure": {PatchBackoff(), []int{1, 2, 4, 8, 16, 32, 60, 60, 60}},
		"a denial":  {DenialBackoff(10 * time.Minute), []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600}},
	} {
		for attempt, seconds := range tt.seconds {
			want := time.Duration(seconds) * time.Second
			if got := tt.backoff.Step(); got < want || got > want+want/10 {
				t.Errorf("%s: after attempt %d it waits %s, want %s and at most a tenth more", name, attempt+1, got, want)
			}
		}
	}
}

func TestSleepEndsWithTheContext(t *testing.T) {
	for _, tt := range []struct {
		name    string
		bound   time.Duration
		want    bool
		elapsed time.Duration
	}{
		{"the context lasts longer", time.Hour, true, time.Minute},
		{"the context ends first", time.Second, false, time.Second},
		{"the context has ended", 0, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.bound)
				defer cancel()
				began := time.Now()
				if got := Sleep(ctx, time.Minute); got != tt.want || time.Since(began) != tt.elapsed {
					t.Errorf("got %t after %s, want %t after %s", got, time.Since(began), tt.want, tt.elapsed)
				}
			})
		})
	}
}

func TestNthDelayStaysAtTheLastDelay(t *testing.T) {
	delays := wait.Backoff{Duration: time.Second, Factor: 2, Steps: 4, Cap: 5 * time.Second}
	for n, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 5 * time.Second, 5: 5 * time.Second, 100: 5 * time.Second,
	} {
		if got := NthDelay(delays, n); got != want {
			t.Errorf("delay %d is %s, want %s", n, got, want)
		}
	}
}
