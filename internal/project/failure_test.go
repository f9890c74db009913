package project

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAFailureHasNoTextOfTheAPIServer(t *testing.T) {
	const value = "s3cret"
	wishes, err := parseWishes("spec.auth.password=secret/db/password;spec.auth.user=secret/db/user")
	testkit.Must(t, err)
	answer := func(code int32, why metav1.StatusReason, causes ...metav1.StatusCause) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: code, Reason: why, Message: "Invalid value: " + value, Details: &metav1.StatusDetails{Name: value, Causes: causes},
		}}
	}
	cause := func(field string) metav1.StatusCause {
		return metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: field, Message: "Invalid value: " + value}
	}
	owned := metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.auth.password", Message: "conflict with " + value}
	for _, tt := range []struct {
		name, text string
		err        error
		reason     reason
	}{
		{"a value that is not valid", "applying: Invalid (code 422), spec.auth.password", answer(422, metav1.StatusReasonInvalid, cause("spec.auth.password"), cause("spec.auth.password")), reasonRejected},
		{"a field with a value in its path", "applying: Invalid (code 422)", answer(422, metav1.StatusReasonInvalid, cause("spec.users["+value+"]")), reasonRejected},
		{"a code that is none", "applying: code 999", answer(999, metav1.StatusReasonInvalid), reasonNone},
		{"another manager", "applying: Conflict (code 409), spec.auth.password", answer(409, metav1.StatusReasonConflict, owned), reasonConflict},
		{"a permission", "applying: Forbidden (code 403)", answer(403, metav1.StatusReasonForbidden), reasonForbidden},
		{"no answer", "applying: no response from the api server", errors.New("proxy: " + value), reasonNone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := reduce("applying", tt.err, wishes)
			if f.Error() != tt.text || f.reason() != tt.reason {
				t.Errorf("got %q, %q, want %q, %q", f.Error(), f.reason(), tt.text, tt.reason)
			}
			for _, why := range []reason{reasonConflict, reasonForbidden, reasonRejected, reasonUnavailable} {
				if told := f.explain(why); strings.Contains(told, value) {
					t.Errorf("for %s it is told %q", why, told)
				}
			}
		})
	}
}
