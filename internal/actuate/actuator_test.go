package actuate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAnActuatorRollsWhatDependsOnAChangeAndFollowsIt(t *testing.T) {
	c := newCluster(t, deploymentOf("web", "db", rollOn("auto")), deploymentOf("other", "else", rollOn("auto")))
	_, stop := c.start(c.options())
	seq := c.publish(0, nil)
	c.wantLast("web", "started content-changed")
	if got := c.patches(); !slices.Equal(got, []string{"web"}) {
		t.Errorf("patched were %v, want web alone", got)
	}
	web := c.get("web")
	if cause := web.Spec.Template.Annotations[events.AnnotationCause]; cause != "secret/db (password)" {
		t.Errorf("the cause is %q", cause)
	}
	stop()

	// Another actuator continues the rollout where the first one left it.
	_, stop = c.start(c.options())
	c.set("web", c.complete)
	c.wantLast("web", "completed rolled-out")

	c.publish(seq, func(change *events.Change) { change.Fingerprint = fp("c") })
	c.wantLast("web", "started content-changed")
	c.set("web", func(d *appsv1.Deployment) {
		d.Status.ObservedGeneration = d.Generation
		d.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
		}}
	})
	c.wantLast("web", "failed deadline-exceeded")
	stop()
	if got := c.patches(); !slices.Equal(got, []string{"web", "web"}) {
		t.Errorf("patched were %v, want web, once for each change", got)
	}
}

func TestAnActuatorHoldsBackWhatMustWait(t *testing.T) {
	t.Run("for a place", func(t *testing.T) {
		c := newCluster(t, deploymentOf("one", "db", rollOn("auto")), deploymentOf("two", "db", rollOn("auto")))
		options := c.options()
		options.MaxRollouts = 1
		c.start(options)
		c.publish(0, nil)
		c.eventually("one is patched", func() bool { return len(c.patches()) == 1 })
		first := c.patches()[0]
		c.wantLast(first, "started content-changed")
		c.set(first, c.complete)
		c.eventually("the other is patched", func() bool { return len(c.patches()) == 2 })
	})
	t.Run("for a lower wave, also where that needs nothing", func(t *testing.T) {
		first := map[string]string{workload.AnnotationRollOn: "auto", "keyturn.dev/wave": "-1"}
		c := newCluster(t, deploymentOf("one", "db", first), deploymentOf("two", "db", rollOn("auto")))
		c.start(c.options())
		c.publish(0, nil)
		c.wantLast("one", "started content-changed")
		if got := c.patches(); !slices.Equal(got, []string{"one"}) {
			t.Errorf("patched were %v, want the lower wave alone", got)
		}
		c.set("one", c.complete)
		c.wantLast("two", "started content-changed")
	})
	t.Run("for one that failed, until it is well", func(t *testing.T) {
		first := map[string]string{workload.AnnotationRollOn: "auto", "keyturn.dev/wave": "-1"}
		c := newCluster(t, deploymentOf("one", "db", first), deploymentOf("two", "db", rollOn("auto")))
		c.start(c.options())
		c.publish(0, nil)
		c.wantLast("one", "started content-changed")
		c.set("one", func(d *appsv1.Deployment) {
			d.Status.ObservedGeneration = d.Generation
			d.Status.Conditions = []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
			}}
		})
		c.wantLast("one", "failed deadline-exceeded")
		if got := c.patches(); !slices.Equal(got, []string{"one"}) {
			t.Errorf("patched were %v, want the one that failed alone", got)
		}
		c.set("one", func(d *appsv1.Deployment) { d.Status.Conditions = nil; c.complete(d) })
		c.wantLast("two", "started content-changed")
	})
}

func TestAnActuatorThatMayNotPatchTriesUntilItMay(t *testing.T) {
	c := newCluster(t, deploymentOf("web", "db", rollOn("auto")))
	c.refuse = apierrors.NewForbidden(deploymentResource, "web", errors.New(`User "x" cannot patch resource "deployments"`))
	c.start(c.options())
	c.publish(0, nil)
	c.eventually("it says so", func() bool { return strings.Contains(c.logged(), "patch failed; retrying") })
	c.mu.Lock()
	c.refuse = nil
	c.mu.Unlock()
	c.wantLast("web", "started content-changed")
}

func TestADryRunPatchesNothingAndLeavesItToBeDone(t *testing.T) {
	c := newCluster(t, deploymentOf("web", "db", rollOn("auto")))
	options := c.options()
	options.DryRun = true
	_, stop := c.start(options)
	c.publish(0, nil)
	c.eventually("it says what it would do", func() bool { return strings.Contains(c.logged(), "reason=dry-run") })
	stop()
	if got := c.patches(); len(got) != 0 {
		t.Errorf("patched were %v", got)
	}
	c.start(c.options())
	c.wantLast("web", "started content-changed")
}

func TestAnElectedActuatorLeadsAndGivesItsLeaseBack(t *testing.T) {
	c := newCluster(t, deploymentOf("web", "db", rollOn("auto")))
	options := c.options()
	options.LeaderElect, options.Identity = true, "me"
	a, stop := c.start(options)
	c.eventually("it leads", a.leading.Load)
	c.publish(0, nil)
	c.wantLast("web", "started content-changed")
	stop()
	if a.leading.Load() {
		t.Error("it leads after it has ended")
	}
	lease, err := c.client.CoordinationV1().Leases(options.LeaseNamespace).Get(t.Context(), options.LeaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("the lease is held by %q", *holder)
	}
}

func TestAnActuatorSaysWhichRightIsMissing(t *testing.T) {
	c := newCluster(t)
	c.client.PrependReactor("list", "cronjobs", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "cronjobs"}, "", errors.New("no"))
	})
	options := c.options()
	options.Namespaces = []string{"shop"}
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if a.Ready() == nil {
		t.Error("it is ready before it has asked")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx, c.bus) }()
	const want = "no permission to list and watch cronjobs in namespace shop; grant it as in deploy/base/rbac.yaml: "
	c.eventually("it says what is missing", func() bool {
		err := a.Ready()
		return err != nil && strings.Contains(err.Error(), want) && apierrors.IsForbidden(err)
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
