package actuate

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

func TestATermBeginsOrEndsFirst(t *testing.T) {
	ended := &term{finished: make(chan struct{})}
	if !ended.end() {
		t.Error("a term that has not begun could not be ended")
	}
	if ended.begin() {
		t.Error("a term that was ended began")
	}
	if !ended.end() {
		t.Error("a term that was ended is said to have begun")
	}
	begun := &term{finished: make(chan struct{})}
	if !begun.begin() {
		t.Error("a term could not begin")
	}
	if begun.end() {
		t.Error("a term that has begun is said to have ended without it")
	}
}

func TestAnActuatorThatNeverLeadsEndsWhenItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, seconds, now := "other", int32(15), metav1.NewMicroTime(time.Now())
		client := fake.NewClientset(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "keyturn-system", Name: "lease", ResourceVersion: "1"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &other, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now,
			},
		})
		e := election{client: client, namespace: "keyturn-system", name: "lease", identity: "me", unfit: testOptions().Unfit, log: testOptions().Logger}
		led := false
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.run(ctx, func(context.Context) error { led = true; return nil }) }()
		time.AfterFunc(leaseDuration/2, cancel)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(leaseDuration):
			t.Error("it did not end")
		}
		if led {
			t.Error("it has led")
		}
		lease, err := client.CoordinationV1().Leases("keyturn-system").Get(t.Context(), "lease", metav1.GetOptions{})
		if err != nil || *lease.Spec.HolderIdentity != other {
			t.Errorf("the lease is held by %q (%v), want it as it was", *lease.Spec.HolderIdentity, err)
		}
	})
}

func TestAnActuatorLeadsOnlyWhileItIsFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var leads [2]atomic.Bool
		var cutOff [2]atomic.Bool
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		start := func(i int) {
			e := election{
				client: client, namespace: "keyturn-system", name: "lease", identity: strconv.Itoa(i), log: testOptions().Logger,
				unfit: func() error {
					if cutOff[i].Load() {
						return errors.New("cut off")
					}
					return nil
				},
			}
			running.Go(func() {
				err := e.run(ctx, func(ctx context.Context) error {
					if leads[1-i].Load() {
						t.Error("both lead")
					}
					leads[i].Store(true)
					<-ctx.Done()
					leads[i].Store(false)
					return nil
				})
				if err != nil {
					t.Errorf("it ended with %v", err)
				}
			})
		}
		want := func(why string, first, second bool) {
			t.Helper()
			<-time.After(2 * leaseDuration)
			synctest.Wait()
			if leads[0].Load() != first || leads[1].Load() != second {
				t.Errorf("%s: leading are %t, %t, want %t, %t", why, leads[0].Load(), leads[1].Load(), first, second)
			}
		}
		start(0)
		want("there is one", true, false)
		start(1)
		cutOff[1].Store(true)
		want("there are two", true, false)
		cutOff[0].Store(true)
		want("none is fit", false, false)
		cutOff[1].Store(false)
		want("one is fit again", false, true)
		cutOff[0].Store(false)
		want("both are", false, true)
		cancel()
		running.Wait()
	})
}

func TestALeaderThatCannotRenewTheLeaseStopsBeforeAnotherMayLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var fails atomic.Bool
		client.PrependReactor("update", "leases", func(action k8stesting.Action) (bool, runtime.Object, error) {
			lease, _ := action.(k8stesting.UpdateAction).GetObject().(*coordinationv1.Lease)
			renews := *lease.Spec.HolderIdentity == "me"
			return renews && fails.Load(), nil, apierrors.NewServerTimeout(coordinationv1.Resource("leases"), "update", 1)
		})
		e := election{client: client, namespace: "keyturn-system", name: "lease", identity: "me", unfit: testOptions().Unfit, log: testOptions().Logger}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := e.run(ctx, func(leading context.Context) error {
			fails.Store(true)
			<-leading.Done()
			cancel()
			lease, err := client.CoordinationV1().Leases("keyturn-system").Get(t.Context(), "lease", metav1.GetOptions{})
			if err != nil || *lease.Spec.HolderIdentity != "me" {
				t.Errorf("while it leads, the lease is held by %q (%v)", *lease.Spec.HolderIdentity, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
		lease, err := client.CoordinationV1().Leases("keyturn-system").Get(t.Context(), "lease", metav1.GetOptions{})
		if err != nil || *lease.Spec.HolderIdentity != "" {
			t.Errorf("after that the lease is held by %q (%v), want nobody", *lease.Spec.HolderIdentity, err)
		}
	})
}
