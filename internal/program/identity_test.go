package program

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/bus"
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
	client.PrependReactor("get", "namespaces", func(k8stesting.Action) (bool, apiruntime.Object, error) {
		if len(errs) == 0 {
			return false, nil, nil
		}
		err := errs[0]
		errs = errs[1:]
		return true, nil, err
	})
	return client
}

func newBus(t *testing.T) *bus.Bus {
	t.Helper()
	b, _ := newStream(t)
	return b
}

// newStream returns a bus, and the stream with the claims.
func newStream(t *testing.T) (*bus.Bus, jetstream.Stream) {
	t.Helper()
	nc, js := natstest.Streams(t)
	b, err := bus.Open(t.Context(), nc, "prod-eu", nil)
	testkit.Must(t, err)
	stream, err := js.Stream(t.Context(), events.StreamChanges)
	testkit.Must(t, err)
	return b, stream
}

// identifier is claimName or checkName.
type identifier = func(context.Context, identity, *bus.Bus) (keep, error)

// answered calls claimName or checkName until the stream has answered. Neither returns an error if it does not: they log that, and try again later.
func answered(t *testing.T, do identifier, of identity, b *bus.Bus) (k keep, err error) {
	t.Helper()
	of.interval = 10 * time.Millisecond
	testkit.Eventually(t, "the stream answers", func() bool {
		log := &testkit.Log{}
		of.log = log.Logger()
		k, err = do(t.Context(), of, b)
		return !strings.Contains(log.String(), "cluster name neither claimed nor checked")
	})
	return k, err
}

func TestTwoClustersCannotHaveOneName(t *testing.T) {
	b := newBus(t)
	first := identity{client: cluster("uid-one")}
	second := identity{client: cluster("uid-two")}
	for _, step := range []struct {
		name    string
		do      identifier
		of      identity
		refused bool
	}{
		{"the actuator of the first starts before its watcher", checkName, first, false},
		{"the watcher of the first claims the name", claimName, first, false},
		{"and again when it is restarted", claimName, first, false},
		{"the actuator of the first", checkName, first, false},
		{"the watcher of the second is refused", claimName, second, true},
		{"the actuator of the second is refused", checkName, second, true},
		{"the second replaces the first", claimName, identity{client: second.client, replaces: "uid-one"}, false},
		{"and needs not say so again", claimName, second, false},
		{"the first is refused from then on", claimName, first, true},
		{"what has no cluster claims nothing", claimName, identity{}, false},
	} {
		if _, err := answered(t, step.do, step.of, b); errors.Is(err, bus.ErrClaimed) != step.refused || err != nil != step.refused {
			t.Errorf("%s: got %v, want refused: %t", step.name, err, step.refused)
		}
	}
}

func TestWhatKeepsTheClusterFromBeingCheckedIsSaidAndIsNoReasonToStop(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "kube-system", errors.New("no"))
	for _, tt := range []struct {
		name string
		err  error
		want string
		// claims reports whether the name is claimed in the end.
		claims bool
	}{
		{"the permission is missing", forbidden, "cluster identity not checked: no permission to get namespace kube-system", false},
		{"the API server is not there yet", errors.New("connection refused"), "namespace kube-system cannot be read", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBus(t)
			var log bytes.Buffer
			of := identity{client: answering("uid-one", tt.err), interval: claimCheckInterval, log: slog.New(slog.NewTextHandler(&log, nil))}
			if _, err := claimName(t.Context(), of, b); err != nil {
				t.Errorf("got %v", err)
			}
			if strings.Count(log.String(), tt.want) != 1 {
				t.Errorf("the log does not say once that %s:\n%s", tt.want, &log)
			}
			err := natstest.Answered(t, func() error {
				_, err := b.Last(t.Context(), events.ClaimSubject("prod-eu"))
				return err
			})
			if errors.Is(err, events.ErrNotFound) == tt.claims {
				t.Errorf("reading the claim: got %v, want it there: %t", err, tt.claims)
			}
		})
	}
}

func TestAClaimThatTheStreamHasLostIsMadeAgain(t *testing.T) {
	b, stream := newStream(t)
	k, err := answered(t, claimName, identity{client: cluster("uid-one")}, b)
	testkit.Must(t, err)
	testkit.Run(t, "the first cluster", endless(k))
	second := identity{client: cluster("uid-two")}
	for range 2 {
		testkit.Must(t, stream.Purge(t.Context()))
		testkit.Await(t, "the name is claimed again", func(ctx context.Context) bool {
			_, err := b.Last(ctx, events.ClaimSubject("prod-eu"))
			return err == nil
		})
		for name, do := range map[string]identifier{"the watcher": claimName, "the actuator": checkName} {
			if _, err := answered(t, do, second, b); !errors.Is(err, bus.ErrClaimed) {
				t.Errorf("%s of a second cluster: got %v, want it refused", name, err)
			}
		}
	}
}

// endless is a keep as something to run.
func endless(k keep) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		k(ctx)
		return nil
	}
}

// Otherwise one message of whoever has the key of the watcher's NATS user would end both programs, at each start again.
func TestAClusterWhoseNameWasTakenMeanwhileSaysSoAndGoesOn(t *testing.T) {
	for name, do := range map[string]identifier{"a watcher": claimName, "an actuator": checkName} {
		t.Run(name, func(t *testing.T) {
			b, stream := newStream(t)
			first := identity{client: cluster("uid-one")}
			if _, err := answered(t, claimName, first, b); err != nil {
				t.Fatal(err)
			}
			log := &testkit.Log{}
			first.interval, first.log = 10*time.Millisecond, log.Logger()
			k, err := do(t.Context(), first, b)
			testkit.Must(t, err)
			testkit.Must(t, stream.Purge(t.Context()))
			if _, err := answered(t, claimName, identity{client: cluster("uid-two")}, b); err != nil {
				t.Fatal(err)
			}
			stop := testkit.Run(t, name, endless(k))
			testkit.Eventually(t, "it says that another cluster has the name", func() bool {
				return strings.Contains(log.String(), "another cluster has taken the name of this one")
			}, log.String)
			stop()
			if _, err := answered(t, do, first, b); !errors.Is(err, bus.ErrClaimed) {
				t.Errorf("its next start: got %v, want it refused", err)
			}
		})
	}
}
