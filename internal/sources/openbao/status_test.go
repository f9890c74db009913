package openbao

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestStatus_MountsInAuditLinesHideNothing(t *testing.T) {
	log, now := &testkit.Log{}, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := newStatus(log.Logger(), func() time.Time { return now })
	forge := func(prefix string) {
		for n := range 2 * maxMountFailures {
			s.noteNamedFailure(t.Context(), s.audited, auditedIn(fmt.Sprintf("%s-%d", prefix, n)), errNoMount)
		}
	}
	logged := func(text string) int { return strings.Count(log.String(), text) }
	forge("first")
	if got := logged("reason=no-mount"); got != maxMountFailures {
		t.Errorf("%d mounts are logged, want %d", got, maxMountFailures)
	}
	sealed := &statusError{code: 503, message: "Vault is sealed"}
	s.noteFailure(t.Context(), "secret", sealed)
	s.noteFailure(t.Context(), auditedPaths, sealed)
	if got := logged("Vault is sealed"); got != 2 {
		t.Errorf("it is logged %d times that the store is sealed, want for the mount and for the audited paths:\n%s", got, log)
	}
	s.noteSuccess(t.Context(), "secret")
	if logged("store can be read again") != 1 {
		t.Errorf("want the log to tell that it can be read again:\n%s", log)
	}

	// Room is made by a success, and after mountFailureAge.
	s.noteSuccess(t.Context(), auditedIn("first-0"))
	forge("second")
	if got := logged("of second-"); got != 1 {
		t.Errorf("%d other mounts are logged after one works again, want 1", got)
	}
	now = now.Add(mountFailureAge)
	forge("third")
	if got := logged("of third-"); got != maxMountFailures {
		t.Errorf("%d mounts are logged an hour later, want %d", got, maxMountFailures)
	}
	if len(s.audited) != maxMountFailures || len(s.failures) != maxMountFailures+1 {
		t.Errorf("%d mounts and %d failures are remembered", len(s.audited), len(s.failures))
	}
}
