package sources

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestItIsSaidOnceThatAKindIsNotInstalledAnyMore(t *testing.T) {
	log, state := &lockedBuffer{}, &installState{}
	failures := &watchErrors{readiness: &readiness{}, now: time.Now, log: slog.New(slog.NewJSONHandler(log, nil))}
	handle := failures.of(externalSecretSource.resource, grantCustom, state)
	for range 3 {
		handle(t.Context(), nil, apierrors.NewNotFound(externalSecretSource.custom.GroupResource(), ""))
	}
	if times := strings.Count(log.String(), "kind of sources no longer installed"); times != 1 {
		t.Errorf("it is said %d times, want once:\n%s", times, log)
	}
	if !state.absent.Load() || !state.troubled.Load() {
		t.Error("it is waited for")
	}
}

func TestAMissingPermissionKeepsTheWatcherFromBeingReady(t *testing.T) {
	log, ready, state := &lockedBuffer{}, &readiness{}, &installState{}
	failures := &watchErrors{readiness: ready, now: time.Now, log: slog.New(slog.NewJSONHandler(log, nil))}
	handle := failures.of(externalSecretSource.resource, grantCustom, state)
	handle(t.Context(), nil, apierrors.NewForbidden(externalSecretSource.custom.GroupResource(), "", errors.New("no")))
	if err := ready.problem(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), grantCustom) {
		t.Errorf("the problem is %v", err)
	}
	if !strings.Contains(log.String(), `"msg":"permission missing"`) {
		t.Errorf("the log is:\n%s", log)
	}
	if state.absent.Load() || !state.troubled.Load() {
		t.Error("it is taken for not installed")
	}
	ready.complete.Store(true)
	if err := ready.problem(); err != nil {
		t.Errorf("in the end the problem is %v", err)
	}
}

func TestTheManifestsThatGrantAPermissionExist(t *testing.T) {
	for _, manifest := range []string{grantBase, grantCustom, grantNamespaces} {
		if _, err := os.Stat("../../" + manifest); err != nil {
			t.Error(err)
		}
	}
}
