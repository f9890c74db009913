package actuate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
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
			ObjectMeta: metav1.ObjectMeta{Namespace: "keyturn-system", Name: leaseName, ResourceVersion: "1"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &other, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now,
			},
		})
		e := election{client: client, namespace: "keyturn-system", identity: "me", log: testOptions().Logger}
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
		lease, err := client.CoordinationV1().Leases("keyturn-system").Get(t.Context(), leaseName, metav1.GetOptions{})
		if err != nil || *lease.Spec.HolderIdentity != other {
			t.Errorf("the lease is held by %q (%v), want it as it was", *lease.Spec.HolderIdentity, err)
		}
	})
}
