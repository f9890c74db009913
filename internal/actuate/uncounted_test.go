package actuate

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
)

// A release that did not count had another admission policy.
func TestARollThatMayNotBeCountedIsMadeWithoutTheCount(t *testing.T) {
	const most = 2
	c := newCluster(t, deploymentOf("web", "db", rollOn("auto")))
	refused := 0
	c.client.PrependReactor("patch", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		patch, ok := action.(k8stesting.PatchAction)
		if !ok || !bytes.Contains(patch.GetPatch(), []byte("keyturn.dev~1rolls")) {
			return false, nil, nil
		}
		refused++
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("denied by a policy"))
	})
	now, options := time.Now().Truncate(time.Second), c.options()
	options.Now, options.MaxRollsPerHour = func() time.Time { return now }, most
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := a.index.read(deployments, c.get("web"))
	a.index.observe(w, false)
	l := newLoop(a.surroundings, unwritten(a))
	l.inFlight.done = func(*events.Delivery, context.Context, error) {}
	for i := range most + 1 {
		version := c.next()
		change := changeOf(func(c *events.Change) {
			c.ResourceVersion, c.ChangedAt, c.Fingerprint = version, version, fp(string("0123456789"[i]))
		})
		l.intake.consider(t.Context(), eventOf(change), a.index.get(w.Key()), nil)
		now = now.Add(20 * time.Second)
		l.dispatcher.dispatch(t.Context())
		if !l.patcher.idle() {
			l.completion.finish(t.Context(), <-l.patcher.results)
		}
	}
	if got := len(c.patches()); got != most || refused != most {
		t.Errorf("it is rolled %d times, after %d refusals; want %d of each", got, refused, most)
	}
	if !l.gathering.isHeldFor(w.Key(), plan.RolledTooOften) {
		t.Error("the rolls do not count while this leader lasts")
	}
	if got := strings.Count(c.logged(), "refuses the annotation keyturn.dev/rolls"); got != 1 {
		t.Errorf("it is said %d times, want once:\n%s", got, c.logged())
	}
}
