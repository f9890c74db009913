//go:build !race

package actuate_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// cluster is an API server with the controllers of workloads. Unlike the fake client's own, it has resourceVersions, refuses a write of an outdated
// object, and loses nothing between a list and the watch that follows it.
type cluster struct {
	t       *testing.T
	storage *fieldManagers

	mu      sync.Mutex
	version int
	// past are all events of watches, by resource, and watches who has them next.
	past    map[schema.GroupVersionResource][]watch.Event
	watches map[schema.GroupVersionResource]*watch.Broadcaster
	// refusals say why a patch of a workload is refused, and stalled which rollouts make no progress.
	refusals map[string]error
	stalled  map[string]bool
	writes   []write
	// notices are the Kubernetes Events that were written: "web Rolled". Those of them that have names of their own have the names in named.
	notices, named []string
}

// write is a patch that was applied.
type write struct {
	at       time.Time
	workload string
	// rolls says that it has replaced the pods. Otherwise it has only written a record.
	rolls bool
	body  string
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{
		t: t, storage: newFieldManagers(k8stesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())), version: 1000,
		past: make(map[schema.GroupVersionResource][]watch.Event), watches: make(map[schema.GroupVersionResource]*watch.Broadcaster),
		refusals: make(map[string]error), stalled: make(map[string]bool),
	}
	c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	return c
}

func (c *cluster) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, broadcaster := range c.watches {
		broadcaster.Shutdown()
	}
}

// errCut is what a request gets on a link that is cut.
var errCut = errors.New("connection refused")

// link is a connection to the API server, which can be cut.
type link struct {
	client *fake.Clientset
	cut    atomic.Bool
}

func (c *cluster) connect() *link {
	l := &link{client: fake.NewClientset()}
	l.client.PrependReactor("*", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		if l.cut.Load() {
			return true, nil, errCut
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		answer, err := c.answer(action)
		return true, answer, err
	})
	l.client.PrependWatchReactor("*", func(action k8stesting.Action) (bool, watch.Interface, error) {
		if l.cut.Load() {
			return true, nil, errCut
		}
		return c.watch(action)
	})
	return l
}

func (c *cluster) answer(action k8stesting.Action) (runtime.Object, error) {
	resource := action.GetResource()
	switch request := action.(type) {
	case k8stesting.ListActionImpl:
		return c.list(request)
	case k8stesting.CreateActionImpl:
		if len(request.CreateOptions.DryRun) > 0 {
			return request.GetObject(), nil
		}
		if event, ok := request.GetObject().(*corev1.Event); ok {
			about := event.InvolvedObject
			name := nameOf(events.Workload{Kind: strings.ToLower(about.Kind), Namespace: about.Namespace, Name: about.Name})
			if slices.Contains(c.named, event.Name) {
				return nil, apierrors.NewAlreadyExists(resource.GroupResource(), event.Name)
			}
			if event.Name != "" {
				c.named = append(c.named, event.Name)
			}
			c.notices = append(c.notices, name+" "+event.Reason)
			return event, nil
		}
		c.storage.writes(request.CreateOptions.FieldManager)
		return c.add(resource, request.GetObject())
	case k8stesting.UpdateActionImpl:
		c.storage.writes(request.UpdateOptions.FieldManager)
		return c.update(resource, request.GetObject(), request.GetSubresource())
	case k8stesting.PatchActionImpl:
		return c.patch(request)
	case k8stesting.DeleteActionImpl:
		return nil, c.remove(resource, request.GetNamespace(), request.GetName())
	case k8stesting.GetActionImpl:
		return c.storage.Get(resource, request.GetNamespace(), request.GetName())
	default:
		return nil, apierrors.NewMethodNotSupported(resource.GroupResource(), action.GetVerb())
	}
}

func (c *cluster) list(request k8stesting.ListActionImpl) (runtime.Object, error) {
	list, err := c.storage.List(request.GetResource(), request.GetKind(), request.GetNamespace())
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	restrictions := request.GetListRestrictions()
	items = slices.DeleteFunc(items, func(item runtime.Object) bool {
		object := metaOf(item)
		return !restrictions.Labels.Matches(labels.Set(object.GetLabels())) ||
			!restrictions.Fields.Matches(fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()})
	})
	listed, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	listed.SetResourceVersion(strconv.Itoa(c.version))
	return list, meta.SetList(list, items)
}

// add stores a new object.
func (c *cluster) add(resource schema.GroupVersionResource, object runtime.Object) (runtime.Object, error) {
	object = object.DeepCopyObject()
	made := metaOf(object)
	if made.GetName() == "" {
		made.SetName(made.GetGenerateName() + strconv.Itoa(c.version))
	}
	if made.GetUID() == "" {
		made.SetUID(types.UID("uid-" + made.GetName() + "-" + strconv.Itoa(c.version)))
	}
	if created := made.GetCreationTimestamp(); created.IsZero() {
		made.SetCreationTimestamp(metav1.Now())
	}
	made.SetGeneration(1)
	c.progress(object)
	c.next(object)
	if err := c.storage.Create(resource, object, made.GetNamespace()); err != nil {
		return nil, err
	}
	c.announce(resource, watch.Added, object)
	return object, nil
}

func (c *cluster) update(resource schema.GroupVersionResource, object runtime.Object, subresource string) (runtime.Object, error) {
	object = object.DeepCopyObject()
	made := metaOf(object)
	before, err := c.storage.Get(resource, made.GetNamespace(), made.GetName())
	if err != nil {
		return nil, err
	}
	if version := made.GetResourceVersion(); version != "" && version != metaOf(before).GetResourceVersion() {
		return nil, apierrors.NewConflict(resource.GroupResource(), made.GetName(), errors.New("the object has been modified"))
	}
	return object, c.store(resource, before, object, subresource)
}

// store replaces an object, or a part of it. The controller of a workload then brings its pods to the new template, unless its rollouts are stalled
// or only a part was replaced.
func (c *cluster) store(resource schema.GroupVersionResource, before, object runtime.Object, subresource string) error {
	if subresource == "" && !equality.Semantic.DeepEqual(specOf(before), specOf(object)) {
		metaOf(object).SetGeneration(metaOf(before).GetGeneration() + 1)
	}
	withoutEmptyMaps(object)
	c.next(object)
	if err := c.storage.Update(resource, object, metaOf(object).GetNamespace()); err != nil {
		return err
	}
	c.announce(resource, watch.Modified, object)
	if subresource != "" {
		return nil
	}
	after := object.DeepCopyObject()
	if c.progress(after); equality.Semantic.DeepEqual(after, object) {
		return nil
	}
	return c.store(resource, object, after, "status")
}

// withoutEmptyMaps makes annotations absent that are empty: the API server leaves them out, and a JSON patch can add to nothing that is absent.
func withoutEmptyMaps(object runtime.Object) {
	if meta := metaOf(object); len(meta.GetAnnotations()) == 0 {
		meta.SetAnnotations(nil)
	}
	if specOf(object) == nil {
		return
	}
	if _, pod := partsOf(object); len(pod.Annotations) == 0 {
		pod.Annotations = nil
	}
}

// patch applies a JSON patch. One whose tests fail is answered as by an API server.
func (c *cluster) patch(request k8stesting.PatchActionImpl) (runtime.Object, error) {
	resource := request.GetResource()
	before, err := c.storage.Get(resource, request.GetNamespace(), request.GetName())
	if err != nil {
		return nil, err
	}
	name := workloadName(resource, metaOf(before))
	if refusal := c.refusals[name]; refusal != nil {
		return nil, refusal
	}
	after, err := patched(before, request.GetPatch())
	if err != nil {
		return nil, kube.NotApplied()
	}
	if len(request.PatchOptions.DryRun) > 0 {
		return after, nil
	}
	c.storage.writes(request.PatchOptions.FieldManager)
	part := ""
	if equality.Semantic.DeepEqual(specOf(before), specOf(after)) {
		part = "metadata" // The pods stay as they are.
	}
	if err := c.store(resource, before, after, part); err != nil {
		return nil, err
	}
	c.writes = append(c.writes, writeOf(resource, before, after, request.GetPatch()))
	return after, nil
}

// writeOf returns what a patch has done that was applied.
func writeOf(resource schema.GroupVersionResource, before, after runtime.Object, body []byte) write {
	return write{
		at: time.Now(), workload: workloadName(resource, metaOf(before)), body: string(body),
		rolls: !equality.Semantic.DeepEqual(templateOf(before), templateOf(after)),
	}
}

func (c *cluster) remove(resource schema.GroupVersionResource, namespace, name string) error {
	object, err := c.storage.Get(resource, namespace, name)
	if err != nil {
		return err
	}
	if err := c.storage.Delete(resource, namespace, name); err != nil {
		return err
	}
	object = object.DeepCopyObject()
	c.next(object)
	c.announce(resource, watch.Deleted, object)
	return nil
}

// next gives an object the next resourceVersion.
func (c *cluster) next(object runtime.Object) {
	c.version++
	metaOf(object).SetResourceVersion(strconv.Itoa(c.version))
}

// announce sends an event to the watches of a resource.
func (c *cluster) announce(resource schema.GroupVersionResource, kind watch.EventType, object runtime.Object) {
	event := watch.Event{Type: kind, Object: object.DeepCopyObject()}
	c.past[resource] = append(c.past[resource], event)
	if broadcaster := c.watches[resource]; broadcaster != nil {
		_ = broadcaster.Action(kind, object.DeepCopyObject()) // It fails only after its end.
	}
}

// watch begins a watch with what has happened since the list before it.
func (c *cluster) watch(action k8stesting.Action) (bool, watch.Interface, error) {
	request, ok := action.(k8stesting.WatchActionImpl)
	if !ok {
		return false, nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	resource := request.GetResource()
	since, _ := strconv.Atoi(request.GetWatchRestrictions().ResourceVersion)
	missed := slices.DeleteFunc(slices.Clone(c.past[resource]), func(event watch.Event) bool {
		version, _ := strconv.Atoi(metaOf(event.Object).GetResourceVersion())
		return version <= since
	})
	broadcaster := c.watches[resource]
	if broadcaster == nil {
		const queue = 10_000 // more than any test has at a time
		broadcaster = watch.NewLongQueueBroadcaster(queue, watch.WaitIfChannelFull)
		c.watches[resource] = broadcaster
	}
	watched, err := broadcaster.WatchWithPrefix(missed)
	if err != nil {
		return true, nil, err
	}
	restrictions := request.GetWatchRestrictions()
	return true, filter(watched, func(event watch.Event) bool {
		object := metaOf(event.Object)
		return (request.GetNamespace() == "" || request.GetNamespace() == object.GetNamespace()) &&
			restrictions.Labels.Matches(labels.Set(object.GetLabels()))
	}), nil
}

// filtered is a watch of some events. Unlike that of package watch, it ends although nobody takes its last event.
type filtered struct {
	source  watch.Interface
	events  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

func filter(source watch.Interface, takes func(watch.Event) bool) *filtered {
	f := &filtered{source: source, events: make(chan watch.Event), stopped: make(chan struct{})}
	go func() {
		defer close(f.events)
		for event := range source.ResultChan() {
			if !takes(event) {
				continue
			}
			select {
			case f.events <- event:
			case <-f.stopped:
				return
			}
		}
	}()
	return f
}

func (f *filtered) ResultChan() <-chan watch.Event { return f.events }

func (f *filtered) Stop() {
	f.once.Do(func() {
		close(f.stopped)
		f.source.Stop()
	})
}

// progress is what the controller of a workload does: all its pods are of the current template, and ready.
func (c *cluster) progress(object runtime.Object) {
	switch w := object.(type) {
	case *appsv1.Deployment:
		if c.stalled[workloadName(appsv1.SchemeGroupVersion.WithResource("deployments"), w)] {
			w.Status.ObservedGeneration, w.Status.UpdatedReplicas, w.Status.UnavailableReplicas = w.Generation, 0, 1
			return
		}
		w.Status = appsv1.DeploymentStatus{ObservedGeneration: w.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	case *appsv1.StatefulSet:
		if c.stalled[workloadName(appsv1.SchemeGroupVersion.WithResource("statefulsets"), w)] {
			w.Status.ObservedGeneration, w.Status.UpdatedReplicas, w.Status.ReadyReplicas, w.Status.AvailableReplicas = w.Generation, 1, 0, 0
			return
		}
		w.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: w.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, CurrentReplicas: 1,
		}
	case *appsv1.DaemonSet:
		w.Status = appsv1.DaemonSetStatus{
			ObservedGeneration: w.Generation, DesiredNumberScheduled: 1, CurrentNumberScheduled: 1, UpdatedNumberScheduled: 1, NumberReady: 1, NumberAvailable: 1,
		}
	}
}

// writesSince returns the patches that were applied after the first n, and counts them.
func (c *cluster) writesSince(n *int) []write {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := slices.Clone(c.writes[*n:])
	*n = len(c.writes)
	return since
}

func metaOf(object runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return accessor
}

// workloadName returns the name that a scene has for a workload, see nameOf.
func workloadName(resource schema.GroupVersionResource, object metav1.Object) string {
	return nameOf(events.Workload{Kind: strings.TrimSuffix(resource.Resource, "s"), Namespace: object.GetNamespace(), Name: object.GetName()})
}

// specOf returns what of an object is its specification.
func specOf(object runtime.Object) any {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return o.Spec
	case *appsv1.StatefulSet:
		return o.Spec
	case *appsv1.DaemonSet:
		return o.Spec
	case *batchv1.CronJob:
		return o.Spec
	default:
		return nil
	}
}

// templateOf returns the template of a workload's pods.
func templateOf(object runtime.Object) any {
	switch o := object.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.CronJob:
		_, pod := partsOf(object)
		return *pod
	case *unstructured.Unstructured:
		template, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "template")
		return template
	default:
		return nil
	}
}

// nextVersion returns the resourceVersion of a write to an object that the actuator does not read.
func (c *cluster) nextVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	return strconv.Itoa(c.version)
}
