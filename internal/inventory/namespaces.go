package inventory

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// namespaceInterval is how often a namespace is read that may be read but not watched, while it says something about its workloads.
	// namespaceQuiet is how often it is read while it says nothing, like most namespaces.
	namespaceInterval, namespaceQuiet = 5 * time.Second, 30 * time.Second
	// namespaceRefusals is how many refusals in a row are believed, and namespaceRepeat is the delay before the next attempt until then. A single
	// refusal may come from an API server that has not read the roles yet.
	namespaceRefusals, namespaceRepeat = 3, 3 * time.Second
	// namespaceAgain is the delay before the next attempt after a refusal that is believed.
	namespaceAgain = time.Minute
)

// Namespaces has what the annotations of namespaces say, nothing for those that may not be read. Few people may write a Namespace, unlike an object
// in it, and a flag would need a restart for each hold. It is safe for concurrent use.
type Namespaces struct {
	client kubernetes.Interface
	log    *slog.Logger
	// lists records the scopes whose namespaces are read, or cannot be.
	lists *kube.FirstLists
	// index reviews the workloads of a namespace that says something else.
	index *Index

	mu     sync.Mutex
	byName map[string]workload.Namespace
}

func newNamespaces(client kubernetes.Interface, log *slog.Logger, lists *kube.FirstLists, index *Index) *Namespaces {
	return &Namespaces{client: client, log: log, lists: lists, index: index, byName: make(map[string]workload.Namespace)}
}

// namespaceScope returns how messages and readiness name a namespace, or all of them.
func namespaceScope(name string) string {
	if name == metav1.NamespaceAll {
		return "namespaces"
	}
	return "namespace " + name
}

// Get returns what a namespace says.
func (n *Namespaces) Get(name string) workload.Namespace {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byName[name]
}

// Set takes what the annotations of a namespace say, nil if it is gone.
func (n *Namespaces) Set(ctx context.Context, name string, annotations map[string]string) {
	now := workload.ReadNamespace(name, annotations)
	n.mu.Lock()
	same := now.Same(n.byName[name])
	n.byName[name] = now
	if now.Same(workload.Namespace{}) {
		delete(n.byName, name) // There may be thousands that say nothing.
	}
	n.mu.Unlock()
	if same {
		return
	}
	if err := now.Invalid(); err != nil {
		n.log.WarnContext(ctx, "annotation of a namespace not valid; its workloads are not rolled until that is fixed", "namespace", name,
			"annotation", workload.AnnotationWindow, "err", err)
	}
	n.index.changedIn(name)
}

// run follows a namespace, or all of them, until the context is done.
func (n *Namespaces) run(ctx context.Context, name string) {
	s := &namespaceStore{Namespaces: n, scope: name}
	for ctx.Err() == nil {
		if name != metav1.NamespaceAll {
			s.poll(ctx)
		}
		err := s.reflect(ctx)
		if err == nil {
			return
		}
		kube.Sleep(ctx, s.refused(ctx, err))
	}
}

// namespaceStore has the namespaces of a scope: one, or all. It belongs to run.
type namespaceStore struct {
	*Namespaces
	scope string
	// refusals counts how often in a row they could not be read because they may not be.
	refusals int
}

// names lists the namespaces of the scope that say anything, in no order.
func (s *namespaceStore) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	isOther := func(name string) bool { return s.scope != metav1.NamespaceAll && s.scope != name }
	return slices.DeleteFunc(slices.Collect(maps.Keys(s.byName)), isOther)
}

// poll reads one namespace again and again, until the context is done or that is not allowed.
func (s *namespaceStore) poll(ctx context.Context) {
	for failing := false; ctx.Err() == nil; {
		found, err := s.client.CoreV1().Namespaces().Get(ctx, s.scope, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			found, err = &corev1.Namespace{}, nil // One that is gone says nothing.
		}
		interval := namespaceInterval
		switch {
		case apierrors.IsForbidden(err):
			return
		case err != nil:
			if !failing && ctx.Err() == nil {
				s.log.WarnContext(ctx, "cannot read a namespace; its last known annotations apply",
					"namespace", s.scope, "retry_in", interval, "err", err)
			}
			failing = true
		default:
			failing = false
			s.Set(ctx, s.scope, found.Annotations)
			s.answered()
			if s.Get(s.scope).Same(workload.Namespace{}) {
				interval = namespaceQuiet
			}
		}
		kube.Sleep(ctx, wait.Jitter(interval, 0.2))
	}
}

// reflect watches a namespace, or all of them, until the context is done and it returns nil, or that is not allowed and it returns the refusal.
func (s *namespaceStore) reflect(ctx context.Context) (refusal error) {
	client, selector := s.client.CoreV1().Namespaces(), ""
	if s.scope != metav1.NamespaceAll {
		selector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.scope).String()
	}
	// A reflector would log the refusal as an error, each time.
	if _, err := client.List(ctx, metav1.ListOptions{FieldSelector: selector, Limit: 1}); apierrors.IsForbidden(err) {
		return err
	}
	reflector := kube.Reflector[*corev1.NamespaceList]{
		Resource: client, Client: s.client, Where: namespaceScope(s.scope), Example: &corev1.Namespace{}, Fields: selector,
		Store: kube.StoreOf[*corev1.Namespace](ctx, s),
	}
	return reflector.Run(ctx, func(_ context.Context, verb string, err error) error {
		if verb == "list" && apierrors.IsForbidden(err) {
			return err
		}
		return nil
	})
}

// answered records that it is known what the namespaces of a scope say.
func (s *namespaceStore) answered() {
	s.refusals = 0
	s.lists.Listed(namespaceScope(s.scope))
}

// refused records that namespaces may not be read, and returns the delay before the next attempt. Once the refusal is believed, nothing waits for
// what they say. What was read before stays: a hold must not end because a permission did.
func (s *namespaceStore) refused(ctx context.Context, err error) time.Duration {
	s.refusals++
	if s.refusals < namespaceRefusals {
		return namespaceRepeat
	}
	if s.refusals == namespaceRefusals {
		s.log.WarnContext(ctx, "no permission to read namespaces; their holds and windows are ignored, except those read before",
			"scope", namespaceScope(s.scope), "annotations", events.AnnotationHold+", "+workload.AnnotationWindow, "kept", len(s.names()), "err", err)
	}
	s.lists.Listed(namespaceScope(s.scope))
	return namespaceAgain
}

// Reduce implements kube.Sink.
func (s *namespaceStore) Reduce(object runtime.Object) (*corev1.Namespace, bool) {
	namespace, ok := object.(*corev1.Namespace)
	if !ok {
		return nil, false
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace.Name, ResourceVersion: namespace.ResourceVersion, Annotations: namespace.Annotations,
	}}, true
}

// Put implements kube.Sink.
func (s *namespaceStore) Put(ctx context.Context, namespace *corev1.Namespace) {
	s.Set(ctx, namespace.Name, namespace.Annotations)
}

// Drop implements kube.Sink.
func (s *namespaceStore) Drop(ctx context.Context, namespace *corev1.Namespace) {
	s.Set(ctx, namespace.Name, nil)
}

// Replace implements kube.Sink.
func (s *namespaceStore) Replace(ctx context.Context, namespaces []*corev1.Namespace, _ string) {
	listed := make(map[string]bool, len(namespaces))
	for _, namespace := range namespaces {
		listed[namespace.Name] = true
		s.Put(ctx, namespace)
	}
	for _, name := range s.names() {
		if !listed[name] {
			s.Set(ctx, name, nil)
		}
	}
	s.answered()
}
