package inventory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// ownRecord is what managedFields say of the record while it is the actuator's own.
const ownRecord = `{"f:metadata":{"f:annotations":{"f:keyturn.dev/rolled":{}}}}`

// member is a workload in a cluster, with the parts that are written.
type member struct {
	kind     workload.Kind
	object   runtime.Object
	meta     *metav1.ObjectMeta
	template *corev1.PodTemplateSpec
	// shown is the object as it was shown last.
	shown runtime.Object
}

// raise is called for a write of the annotations, which only in a Deployment is one of the generation.
func (m *member) raise() {
	if m.kind.Name == "deployment" {
		m.meta.Generation++
	}
}

// manage says in managedFields that a manager has written fields.
func (m *member) manage(manager, subresource, fields string, at int) {
	m.meta.ManagedFields = slices.DeleteFunc(m.meta.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Subresource == subresource
	})
	m.meta.ManagedFields = append(m.meta.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate,
		Time: new(metav1.NewTime(written.Add(time.Duration(at) * time.Second))), FieldsV1: metav1.NewFieldsV1(fields),
	})
}

// side is one of two indexes that see the same.
type side struct {
	index  *Index
	stores map[string]cache.TransformingStore
	read   func(workload.Kind, runtime.Object) (*workload.Workload, bool)
	told   []string
}

func newSide(t *testing.T, kinds workload.Kinds, reading workload.Reading, sink func(*kindStore) kube.Sink[*workload.Workload]) *side {
	s := &side{stores: make(map[string]cache.TransformingStore)}
	hear := func(what string) func(workload.Key) {
		return func(key workload.Key) { s.told = append(s.told, fmt.Sprint(what, key)) }
	}
	s.index = indexWith(reading, hear("changed"), hear("relinked"))
	s.read = s.index.Read
	for _, kind := range kinds {
		s.stores[kind.Name] = kube.StoreOf(t.Context(), sink(&kindStore{Index: s.index, kind: kind, lists: kube.NewFirstLists()}))
	}
	return s
}

// fullStore is a kindStore that reads each object as if nothing was known.
type fullStore struct{ *kindStore }

func (s fullStore) Reduce(object runtime.Object) (*workload.Workload, bool) {
	return workload.Read(s.kind, object, s.options.Reading)
}

// world is a cluster in which everybody writes at random, and two indexes, of which one reads everything.
type world struct {
	*testing.T
	random     *rand.Rand
	version    int
	kinds      workload.Kinds
	reading    workload.Reading
	members    []*member
	both       [2]*side
	hasWidget  bool
	hasRollout bool
}

func newWorld(t *testing.T, seed uint64, kinds workload.Kinds, reading workload.Reading) *world {
	w := &world{T: t, random: rand.New(rand.NewPCG(seed, 2)), kinds: kinds, reading: reading}
	deployment, ofSet, ofDaemons := webDeployment("", rollOn("auto")), webDeployment("", rollOn("auto")), webDeployment("", rollOn("auto"))
	set := &appsv1.StatefulSet{ObjectMeta: ofSet.ObjectMeta, Spec: appsv1.StatefulSetSpec{Template: ofSet.Spec.Template}}
	daemons := &appsv1.DaemonSet{ObjectMeta: ofDaemons.ObjectMeta, Spec: appsv1.DaemonSetSpec{Template: ofDaemons.Spec.Template}}
	w.members = []*member{
		{object: deployment, meta: &deployment.ObjectMeta, template: &deployment.Spec.Template},
		{object: set, meta: &set.ObjectMeta, template: &set.Spec.Template},
		{object: daemons, meta: &daemons.ObjectMeta, template: &daemons.Spec.Template},
	}
	for i, name := range []string{"deployment", "statefulset", "daemonset"} {
		w.members[i].kind, _ = kinds.Named(name)
		w.members[i].meta.Generation = 1
	}
	w.both[0] = newSide(t, kinds, reading, func(s *kindStore) kube.Sink[*workload.Workload] { return s })
	w.both[1] = newSide(t, kinds, reading, func(s *kindStore) kube.Sink[*workload.Workload] { return fullStore{s} })
	w.both[1].read = func(k workload.Kind, object runtime.Object) (*workload.Workload, bool) {
		return workload.Read(k, object, reading)
	}
	return w
}

func pick[T any](w *world, list ...T) T { return list[w.random.IntN(len(list))] }

// annotations are what people write on a workload, by turns with nothing.
var annotations = [][2]string{
	{workload.AnnotationRollOn, "auto"},
	{workload.AnnotationRollOn, "secret/a, configmap/b"},
	{workload.AnnotationRollOn, "configmap/*, secret/db#password"},
	{workload.AnnotationRollOn, "openbao/kv/shop, auto, nonsense//"},
	{workload.AnnotationRollOn, "none"},
	{workload.AnnotationRollOn, "auto, secrets, !secret/a"},
	{"reloader.stakater.com/auto", "true"},
	{"secret.reloader.stakater.com/reload", "a|b.*"},
	{"keyturn.dev/wave", "1"},
	{"keyturn.dev/wave", "first"},
	{"keyturn.dev/hold", "tofu apply"},
	{workload.AnnotationReload, "http://:9090/-/reload"},
}

// writes are the writes of a workload, of which most are of the status.
var writes = []func(*world, *member){
	writeStatus, writeStatus, writeStatus, writeStatus, writeAnnotation, writeAnnotation,
	func(w *world, m *member) { // A roll.
		w.record(m)
		metav1.SetMetaDataAnnotation(&m.template.ObjectMeta, "keyturn.dev/revision", strconv.Itoa(w.version))
		m.meta.Generation++
	},
	func(w *world, m *member) { // Only the record.
		w.record(m)
		m.raise()
	},
	func(w *world, m *member) { // Somebody brings back an earlier record, or removes it.
		metav1.SetMetaDataAnnotation(m.meta, "keyturn.dev/rolled", `{"secret/db":"k1:b@1/u"}`)
		if pick(w, true, false) {
			delete(m.meta.Annotations, "keyturn.dev/rolled")
		}
		m.manage(workload.FieldManager, "", "{}", w.version)
		m.manage("kubectl-edit", "", ownRecord, w.version)
		m.raise()
	},
	func(w *world, m *member) { // Somebody applies the record as it is, which is nobody's own any more.
		m.manage(workload.FieldManager, "", "{}", w.version)
	},
	func(_ *world, m *member) { // A webhook drops managedFields.
		m.meta.ManagedFields = nil
	},
	func(w *world, m *member) {
		metav1.SetMetaDataLabel(m.meta, "team", strconv.Itoa(w.version))
		m.manage("kubectl-label", "", `{"f:metadata":{"f:labels":{}}}`, w.version)
	},
	func(w *world, m *member) {
		m.template.Spec.Containers[0].Image = pick(w, "one", "two", "three")
		m.template.Spec.Containers[0].EnvFrom[0].SecretRef.Name = pick(w, "db", "a", "b")
		m.meta.Generation++
	},
	func(_ *world, m *member) { // Its controller is another one, or none, which is no change of the spec.
		if m.meta.OwnerReferences != nil {
			m.meta.OwnerReferences = nil
			return
		}
		m.meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Widget", Name: "all", Controller: new(true)}}
	},
	func(w *world, m *member) { // It is deleted and made again, with its annotations.
		m.meta.UID, m.meta.Generation = types.UID(strconv.Itoa(w.version)), 1
	},
}

func writeStatus(w *world, m *member) {
	pods, observed := pick[int32](w, 0, 1), m.meta.Generation-pick[int64](w, 0, 1)
	switch object := m.object.(type) {
	case *appsv1.Deployment:
		object.Status = appsv1.DeploymentStatus{ObservedGeneration: observed, Replicas: 1, UpdatedReplicas: pods, AvailableReplicas: pods}
	case *appsv1.StatefulSet:
		object.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: observed, Replicas: 1, UpdatedReplicas: pods, ReadyReplicas: pods, AvailableReplicas: pods,
		}
	case *appsv1.DaemonSet:
		object.Status = appsv1.DaemonSetStatus{
			ObservedGeneration: observed, DesiredNumberScheduled: 1, CurrentNumberScheduled: 1, UpdatedNumberScheduled: pods, NumberAvailable: pods,
		}
	}
	m.manage("kube-controller-manager", "status", `{"f:status":{}}`, w.version)
}

func writeAnnotation(w *world, m *member) {
	annotation := pick(w, annotations...)
	metav1.SetMetaDataAnnotation(m.meta, annotation[0], annotation[1])
	if pick(w, true, false, false) {
		delete(m.meta.Annotations, annotation[0])
	}
	m.manage("kubectl-annotate", "", "{}", w.version)
	m.raise()
}

// record writes a record as the actuator does.
func (w *world) record(m *member) {
	metav1.SetMetaDataAnnotation(m.meta, "keyturn.dev/rolled", fmt.Sprintf(`{"secret/db":"k1:a@%d/u"}`, w.version))
	m.manage(workload.FieldManager, "", ownRecord, w.version)
}

// next returns the next resourceVersion.
func (w *world) next() string {
	w.version++
	return strconv.Itoa(w.version)
}

// write makes a write of a workload, and returns the object after it.
func (w *world) write(m *member) runtime.Object {
	m.meta.ResourceVersion = w.next()
	pick(w, writes...)(w, m)
	return m.object.DeepCopyObject()
}

// show has a watch show an object to both.
func (w *world) show(m *member, object runtime.Object) {
	for _, s := range w.both {
		testkit.Must(w, s.stores[m.kind.Name].Update(object))
	}
	m.shown = object
}

// list has a list of its kind show a workload to both, or that there is none.
func (w *world) list(m *member, objects ...any) {
	version := w.next()
	for _, s := range w.both {
		testkit.Must(w, s.stores[m.kind.Name].Replace(objects, version))
	}
}

// step has something happen that an index sees.
func (w *world) step() {
	m := pick(w, w.members...)
	switch w.random.IntN(12) {
	case 0: // A list shows what a watch has missed.
		w.write(m)
		w.list(m, w.write(m))
	case 1: // A list shows that a workload is gone.
		w.list(m)
	case 2: // The watch shows what the answer to a patch has shown, perhaps after a later write.
		object := w.write(m)
		for _, s := range w.both {
			if answer, ok := s.read(m.kind, object); ok {
				s.index.Answer(answer, true)
			}
		}
		w.show(m, object)
	case 3: // An event comes twice, or a list shows nothing new.
		if m.shown != nil {
			w.show(m, m.shown)
			w.list(m, m.shown)
		}
	case 4:
		w.turnWidget()
	case 5:
		w.turnRollout()
	default:
		w.show(m, w.write(m))
	}
}

// turnWidget makes the controller of the workloads, or deletes it.
func (w *world) turnWidget() {
	version := w.next()
	for _, s := range w.both {
		widget := ownerNamed(w.T, w.kinds, w.reading, "widget", "all", version, "", "")
		if w.hasWidget {
			s.index.Forget(widget.Key(), widget.ID.UID, version)
		} else {
			s.index.Written(widget)
		}
	}
	w.hasWidget = !w.hasWidget
}

// turnRollout makes a Rollout that runs the pods of the Deployment, or deletes it.
func (w *world) turnRollout() {
	version := w.next()
	for _, s := range w.both {
		rollout := runnerOf(w.T, version, "web", "Paused")
		if w.hasRollout {
			s.index.Forget(rollout.Key(), rollout.ID.UID, version)
		} else {
			s.index.Written(rollout)
		}
	}
	w.hasRollout = !w.hasRollout
}
