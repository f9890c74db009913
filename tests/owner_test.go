package tests

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// ownerManager is the field manager of an owner.
const ownerManager = "example-operator"

// byOwner begins the message about a rollout that an owner has reverted. To remove annotations leaves no trace in managedFields, so all that is
// known is who wrote the Deployment before.
const byOwner = `another client, perhaps the field manager "` + ownerManager + `", restored the pod template of before; `

// owner is an operator that owns a Deployment. As many do, it updates the whole object whenever the object is not as it wants it: an informer
// tells it of every write, a queue repeats what fails, and a worker compares.
type owner struct {
	*rig
	desired *appsv1.Deployment
	// keeps means that it has learned to leave Keyturn's annotations alone.
	keeps atomic.Bool

	live  listers.DeploymentNamespaceLister
	queue workqueue.TypedRateLimitingInterface[string]
	end   func()
}

// operate starts an owner of a Deployment, which wants it to stay as it is. It ends with the test, or when end is called.
func (r *rig) operate(name string) *owner {
	r.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(r.client, 0, informers.WithNamespace(r.namespace))
	deployments := factory.Apps().V1().Deployments()
	o := &owner{
		rig: r, desired: r.deployment(name), live: deployments.Lister().Deployments(r.namespace),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	_, err := deployments.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, current any) {
		if deployment, ok := current.(*appsv1.Deployment); ok && deployment.Name == name {
			o.queue.Add(name)
		}
	}})
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.Context())
	factory.StartWithContext(ctx)
	var running sync.WaitGroup
	running.Go(func() { o.work(ctx) })
	o.end = sync.OnceFunc(func() {
		cancel()
		o.queue.ShutDown()
		running.Wait()
		factory.Shutdown()
	})
	r.Cleanup(o.end)
	if !cache.WaitForCacheSync(ctx.Done(), deployments.Informer().HasSynced) {
		r.Fatal("the Deployments are not listed")
	}
	return o
}

func (o *owner) work(ctx context.Context) {
	for {
		name, ended := o.queue.Get()
		if ended {
			return
		}
		switch err := o.reconcile(ctx, name); {
		case err == nil:
			o.queue.Forget(name)
		case apierrors.IsConflict(err) || ctx.Err() != nil:
			o.queue.AddRateLimited(name)
		default:
			o.Errorf("the operator of %s: %v", name, err)
		}
		o.queue.Done(name)
	}
}

func (o *owner) reconcile(ctx context.Context, name string) error {
	live, err := o.live.Get(name)
	if err != nil {
		return err
	}
	wanted := live.DeepCopy()
	o.desired.Spec.DeepCopyInto(&wanted.Spec)
	wanted.Spec.Template.Annotations = o.annotations(o.desired.Spec.Template.Annotations, live.Spec.Template.Annotations)
	if apiequality.Semantic.DeepEqual(wanted, live) {
		return nil
	}
	_, err = o.client.AppsV1().Deployments(o.namespace).Update(ctx, wanted, metav1.UpdateOptions{FieldManager: ownerManager})
	return err
}

// annotations returns the desired ones, and those of others that the owner leaves alone.
func (o *owner) annotations(desired, live map[string]string) map[string]string {
	all := maps.Clone(desired)
	for name, value := range live {
		if strings.HasPrefix(name, "deployment.kubernetes.io/") || o.keeps.Load() && strings.HasPrefix(name, "keyturn.dev/") {
			if all == nil {
				all = make(map[string]string)
			}
			all[name] = value
		}
	}
	return all
}
