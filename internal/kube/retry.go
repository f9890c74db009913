package kube

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// PatchTimeout bounds one attempt of a patch.
	PatchTimeout = 15 * time.Second
	// MaxDenials is how often a patch is denied before the denial is reported, after 31 seconds of PatchBackoff or DenialBackoff, or a little more.
	MaxDenials = 6
)

// PatchBackoff returns the delays between attempts of one patch: a second, doubled up to a minute, with a tenth of jitter.
func PatchBackoff() wait.Backoff { return DenialBackoff(time.Minute) }

// DenialBackoff returns the delays between attempts of what is denied, such as a patch: those of PatchBackoff, but up to longest.
func DenialBackoff(longest time.Duration) wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 20, Cap: longest}
}

// Sleep waits, and reports whether it waited to the end. It returns false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// NthDelay returns the n-th delay, where 1 is the first. After the last step, the delay stays the same. It is for attempts that are counted
// elsewhere, across restarts.
func NthDelay(delays wait.Backoff, n int) time.Duration {
	for range min(n, delays.Steps) - 1 {
		delays.Step()
	}
	return delays.Step()
}

// notApplied is the message for a JSON patch that cannot be applied. No status code or reason identifies this case.
const notApplied = "the server rejected our request due to an error in our request"

// HasChanged reports whether a JSON patch was not applied because the object failed its tests.
func HasChanged(err error) bool {
	var answer apierrors.APIStatus
	return apierrors.IsInvalid(err) && errors.As(err, &answer) && answer.Status().Message == notApplied
}

// NotApplied returns the error of the API server for a JSON patch that it cannot apply.
func NotApplied() error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0, false)
}

// IsMissingRight reports whether an error says that permission for one of the verbs is missing.
func IsMissingRight(err error, verbs ...string) bool {
	return apierrors.IsForbidden(err) && slices.ContainsFunc(verbs, func(verb string) bool {
		return strings.Contains(err.Error(), "cannot "+verb+" resource")
	})
}

// IsDenied reports whether the API server understood a patch and refuses it, so that it would refuse the same patch again. A missing permission is
// not a denial, because it can be granted at any time. Only the message of the authorizer distinguishes the two, not the status code.
func IsDenied(err error) bool {
	if apierrors.IsForbidden(err) {
		return !IsMissingRight(err, "patch", "get", "create", "delete") // A patch, with its related requests, needs these verbs.
	}
	return apierrors.IsInvalid(err) && !HasChanged(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		isOfAdmission(err)
}

// isOfAdmission reports whether a webhook or a policy refused a request. It goes by the message, which the API server writes: a policy may choose
// status 401, and a webhook any status.
func isOfAdmission(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	text := answer.Status().Message
	return strings.Contains(text, "admission webhook ") && strings.Contains(text, " denied the request") ||
		strings.Contains(text, "ValidatingAdmissionPolicy ") && strings.Contains(text, " denied request: ")
}
