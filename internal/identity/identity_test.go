package identity

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// cluster returns the API server of a cluster whose kube-system has the UID.
func cluster(uid types.UID) *fake.Clientset {
	return fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: uid}})
}

// answering returns an API server whose first responses are the errors.
func answering(uid types.UID, errs ...error) *fake.Clientset {
	client := cluster(uid)
	client.PrependReactor("get", "namespaces", func(k8stesting.Action) (bool, runtime.Object, error) {
		if len(errs) == 0 {
			return false, nil, nil
		}
		err := errs[0]
		errs = errs[1:]
		return true, nil, err
	})
	return client
}

func newBus(t *testing.T) *events.Bus {
	t.Helper()
	bus, _ := newStream(t)
	return bus
}

// newStream returns a bus, and the stream with the claims.
func newStream(t *testing.T) (*events.Bus, jetstream.Stream) {
	t.Helper()
	nc, js := natstest.Streams(t)
	bus, err := events.Open(t.Context(), nc, "prod-eu", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), events.StreamChanges)
	if err != nil {
		t.Fatal(err)
	}
	return bus, stream
}

// answered calls Claim or Check until the stream has answered. Neither returns an error if it does not: they log that, and try again later.
func answered(
	t *testing.T, do func(context.Context, Options, *events.Bus) (Keep, error), options Options, bus *events.Bus,
) (keep Keep, err error) {
	t.Helper()
	testkit.Eventually(t, "the stream answers", func() bool {
		log := &testkit.Log{}
		options.Logger = log.Logger()
		keep, err = do(t.Context(), options, bus)
		return !strings.Contains(log.String(), "cluster name neither claimed nor checked")
	})
	return keep, err
}

func TestTwoClustersCannotHaveOneName(t *testing.T) {
	bus := newBus(t)
	first := Options{Client: cluster("uid-one")}
	second := Options{Client: cluster("uid-two")}
	steps := []struct {
		name    string
		do      func(context.Context, Options, *events.Bus) (Keep, error)
		options Options
		refused bool
	}{
		{"the actuator of the first starts before its watcher", Check, first, false},
		{"the watcher of the first claims the name", Claim, first, false},
		{"and again when it is restarted", Claim, first, false},
		{"the actuator of the first", Check, first, false},
		{"the watcher of the second is refused", Claim, second, true},
		{"the actuator of the second is refused", Check, second, true},
		{"the second replaces the first", Claim, Options{Client: second.Client, Replaces: "uid-one"}, false},
		{"and needs not say so again", Claim, second, false},
		{"the first is refused from then on", Claim, first, true},
		{"what has no cluster claims nothing", Claim, Options{}, false},
	}
	for _, step := range steps {
		if _, err := answered(t, step.do, step.options, bus); errors.Is(err, events.ErrClaimed) != step.refused || err != nil != step.refused {
			t.Errorf("%s: got %v, want refused: %t", step.name, err, step.refused)
		}
	}
}

func TestWhatKeepsTheClusterFromBeingCheckedIsSaidAndIsNoReasonToStop(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "kube-system", errors.New("no"))
	tests := []struct {
		name string
		err  error
		want string
		// claims reports whether the name is claimed in the end.
		claims bool
	}{
		{"the permission is missing", forbidden, "cluster identity not checked: no permission to get namespace kube-system", false},
		{"the API server is not there yet", errors.New("connection refused"), "namespace kube-system cannot be read", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bus := newBus(t)
			var log bytes.Buffer
			options := Options{Client: answering("uid-one", tt.err), Logger: slog.New(slog.NewTextHandler(&log, nil))}
			if _, err := Claim(t.Context(), options, bus); err != nil {
				t.Errorf("got %v", err)
			}
			if strings.Count(log.String(), tt.want) != 1 {
				t.Errorf("the log does not say once that %s:\n%s", tt.want, &log)
			}
			err := natstest.Answered(t, func() error {
				_, err := bus.Last(t.Context(), events.ClaimSubject("prod-eu"))
				return err
			})
			if errors.Is(err, events.ErrNotFound) == tt.claims {
				t.Errorf("reading the claim: got %v, want it there: %t", err, tt.claims)
			}
		})
	}
}

func TestAProgramThatIsStoppedWhileItWaitsForTheAPIServerEndsQuietly(t *testing.T) {
	bus := newBus(t)
	ctx, cancel := context.WithCancel(t.Context())
	client := cluster("uid-one")
	client.PrependReactor("get", "namespaces", func(k8stesting.Action) (bool, runtime.Object, error) {
		cancel()
		return true, nil, errors.New("connection refused")
	})
	keep, err := Check(ctx, Options{Client: client, Logger: slog.New(slog.DiscardHandler)}, bus)
	if err != nil {
		t.Errorf("got %v", err)
	}
	if err := keep(ctx); err != nil {
		t.Errorf("keeping it: got %v", err)
	}
}
