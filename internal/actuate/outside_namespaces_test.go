//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// forbidNamespaces returns what has the API server refuse requests about namespaces, for startAfter.
func forbidNamespaces(verbs ...string) func(*fake.Clientset) {
	refusal := apierrors.NewForbidden(corev1.Resource("namespaces"), "", nil)
	return func(client *fake.Clientset) {
		for _, verb := range verbs {
			client.PrependReactor(verb, "namespaces", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
		}
		if slices.Contains(verbs, "watch") {
			client.PrependWatchReactor("namespaces", func(k8stesting.Action) (bool, watch.Interface, error) { return true, nil, refusal })
		}
	}
}

func TestAHoldOnANamespaceHoldsItsWorkloadsUntilItIsTakenOff(t *testing.T) {
	tests := []struct {
		name               string
		forbidden, watched []string
	}{
		{"where all may be watched", nil, nil},
		{"where it may only be read", []string{"list", "watch"}, []string{namespace}},
		{"where it may only be watched", []string{"get"}, []string{namespace}},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.options.Namespaces = tt.watched
			s.workload("web", auto, reads("secret/db"))
			s.workload("now", auto, reads("secret/db"), annotated(workload.AnnotationRollNow, "1"))
			s.namespaceSays(namespace, map[string]string{events.AnnotationHold: "moving"})
			s.observe("secret/db")
			s.startAfter(forbidNamespaces(tt.forbidden...))
			s.pass(time.Minute)
			s.rotate("two", "now")
			s.wantTold("now started content-changed", "now completed rolled-out", "web held on-hold")
			s.wantLast("web", "held on-hold", "somebody has put the workload on hold: namespace shop: moving")
			s.pass(time.Minute)
			s.wantRolls()
			s.namespaceSays(namespace, nil)
			s.pass(10 * time.Second)
			s.wantRolls("web")
		})
	}
}

func TestWithoutPermissionToReadNamespacesTheyHoldNothing(t *testing.T) {
	for name, watched := range map[string][]string{"all": nil, "one": {namespace}} {
		playOf(t, name, func(s *scene) {
			s.options.Namespaces = watched
			s.workload("web", auto, reads("secret/db"))
			s.namespaceSays(namespace, map[string]string{events.AnnotationHold: "moving"})
			s.observe("secret/db")
			s.startAfter(forbidNamespaces("get", "list", "watch"))
			s.pass(time.Minute)
			s.rotate("two", "web")
			if !strings.Contains(s.logText(), "no permission to read namespaces") {
				s.Error("nothing says so")
			}
		})
	}
}

// The time is a minute after midnight.
func TestTheWindowOfAWorkloadCountsRatherThanThatOfItsNamespace(t *testing.T) {
	const open, closed = "0 23 * * * for 2h", "0 3 * * * for 1h"
	tests := []struct {
		name      string
		namespace map[string]string
		own, flag string
		// want is empty if it is rolled.
		want, said string
	}{
		{"that of the namespace counts", map[string]string{workload.AnnotationWindow: closed}, "", "", "held window-closed", closed},
		{"and not that of the flag", map[string]string{workload.AnnotationWindow: open}, "", closed, "", ""},
		{"but that of the workload", map[string]string{workload.AnnotationWindow: closed}, "always", closed, "", ""},
		{"whatever it is", map[string]string{workload.AnnotationWindow: open}, closed, open, "held window-closed", closed},
		{
			"one that is not valid is closed",
			map[string]string{workload.AnnotationWindow: "at night"},
			"", "", "held window-closed",
			"keyturn.dev/window of the namespace is not valid",
		},
		{"the flag counts where the namespace says nothing", nil, "", closed, "held window-closed", closed},
		{"a hold holds in an open window, too", map[string]string{events.AnnotationHold: "moving"}, open, "", "held on-hold", "namespace shop: moving"},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.options.Window = tt.flag
			s.workload("web", auto, reads("secret/db"), annotated(workload.AnnotationWindow, tt.own))
			s.namespaceSays(namespace, tt.namespace)
			s.begin("secret/db")
			s.settled("secret/db", "password", "two")
			if tt.want == "" {
				s.wantRolls("web")
				return
			}
			s.wantRolls()
			s.wantLast("web", tt.want, tt.said)
		})
	}
}

// A Secret that the pods can start without is deleted, maybe with the whole namespace. The API server says so when it is to create a Kubernetes Event.
func TestOnlyANamespaceThatTheAPIServerSaysIsBeingDeletedIsTerminating(t *testing.T) {
	terminating := apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := []struct {
		name  string
		err   error
		rolls []string
	}{
		{"one that takes an Event", nil, []string{"web"}},
		{"one that is being deleted", terminating, nil},
		{"one of which it is not known", apierrors.NewInternalError(errors.New("no")), []string{"web"}},
		{"one without the permission", apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no")), []string{"web"}},
	}
	for _, tt := range tests {
		playOf(t, tt.name, func(s *scene) {
			s.options.RollOnDelete = true
			s.workload("web", auto, reads("secret/db?"))
			s.observe("secret/db")
			s.start()
			s.intercept("create", "events", func(k8stesting.Action) (bool, runtime.Object, error) { return tt.err != nil, nil, tt.err })
			s.pass(time.Minute)
			s.erase("secret/db")
			s.pass(time.Minute)
			s.wantRolls(tt.rolls...)
			if tt.rolls == nil {
				s.wantTold("web failed patch-denied")
				return
			}
			s.wantTold("web started deleted", "web completed rolled-out")
		})
	}
}
