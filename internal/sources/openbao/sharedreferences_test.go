package openbao

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestReferencesAreListedOnceForAllStores(t *testing.T) {
	store := newFakeStore(kv2)
	config := "stores:\n"
	for i := range 5 {
		config += fmt.Sprintf("- {name: s%d, address: 'http://bao-%d', auth: {token: canary-token}, poll: {interval: 1m, referenced: true}}\n", i, i)
	}
	var lists atomic.Int64
	inBubble(t, config, store, func(o *Options) {
		o.Referenced = func(context.Context) ([]Reference, error) {
			lists.Add(1)
			return nil, nil
		}
	}, func(t *testing.T, r *rig) {
		after(10 * time.Minute)
		polls := r.count(t, "keyturn.openbao.polls", "success")
		if polls < 45 {
			t.Fatalf("there were %d polls", polls)
		}
		// At most one for each half of an interval.
		if got := lists.Load(); got < 9 || got > 23 {
			t.Errorf("listed %d times for %d polls of five stores in ten minutes", got, polls)
		}
	})
}

func TestAFeedIsReadyOnceReferencesMayBeListed(t *testing.T) {
	var granted atomic.Bool
	const config = "stores: [{name: main, address: 'http://bao', auth: {token: canary-token}, poll: {interval: 1m, referenced: true, mounts: [nowhere]}}]"
	inBubble(t, config, newFakeStore(kv2), func(o *Options) {
		o.Referenced = func(context.Context) ([]Reference, error) {
			if granted.Load() {
				return nil, nil
			}
			refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "secretstores"}, "", errors.New("no role"))
			return nil, fmt.Errorf("listing secretstores: %w", refusal)
		}
	}, func(t *testing.T, r *rig) {
		after(10 * time.Minute)
		const want = "store main: referenced paths: listing references: listing secretstores: secretstores is forbidden: no role"
		if err := r.feed.Ready(); err == nil || err.Error() != want {
			t.Errorf("without the permission: got %v\nwant %s", err, want)
		}
		granted.Store(true)
		after(2 * time.Minute)
		// The mount still cannot be read.
		if err := r.feed.Ready(); err != nil {
			t.Errorf("with the permission: %v", err)
		}
	})
}

func TestReferencesAreListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists int
		var err error
		shared := newSharedReferences(func(context.Context) ([]Reference, error) {
			lists++
			return []Reference{{Server: fmt.Sprint(lists)}}, err
		}, time.Now)
		want := func(step, server string) {
			t.Helper()
			got, err := shared.list(t.Context(), time.Minute)
			if err != nil || len(got) != 1 || got[0].Server != server {
				t.Errorf("%s: got %v, %v; want the list %s", step, got, err, server)
			}
		}
		want("at first", "1")
		after(time.Minute - 1)
		want("before they are too old", "1")
		after(1)
		want("when they are", "2")
		after(time.Minute)
		err = errors.New("no API server")
		if _, got := shared.list(t.Context(), time.Minute); !errors.Is(got, err) {
			t.Errorf("got %v, want that they cannot be listed", got)
		}
		err = nil
		want("after they could not be listed", "4")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		shared.lock <- struct{}{}
		if _, err := shared.list(ctx, time.Minute); !errors.Is(err, context.Canceled) {
			t.Errorf("while another store lists them: got %v, want to end with the context", err)
		}
	})
}
