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
	// namespaceInterval is how often a namespace with settings is read if it may be read but not watched. namespaceQuiet is how often a namespace
	// without settings is read, which most namespaces are.
	namespaceInterval, namespaceQuiet = 5 * time.Second, 30 * time.Second
	// namespaceRefusals is the number of consecutive refusals that count as a missing permission; namespaceRepeat is the delay between attempts until
	// then. A single refusal may come from an API server that has not read the roles yet.
	namespaceRefusals, namespaceRepeat = 3, 3 * time.Second
	// namespaceAgain is the delay between attempts once the permission counts as missing.
	namespaceAgain = time.Minute
)

// Namespaces contains the settings from the annotations of namespaces, none for those that may not be read. Settings are on Namespaces because few
// users may write them, unlike the objects in them, and because a flag would need a restart for each hold. It is safe for concurrent use.
type Namespaces struct {
	client kubernetes.Interface
	log    *slog.Logger
	// lists records the scopes whose namespaces were read or cannot be read.
	lists *kube.FirstLists
	// index is told to review the workloads of a namespace with new settings.
	index *Index

	mu     sync.Mutex
	byName map[string]workload.Namespace
}

func newNamespaces(client kubernetes.Interface, log *slog.Logger, lists *kube.FirstLists, index *Index) *Namespaces {
	return &Namespaces{client: client, log: log, lists: lists, index: index, byName: make(map[string]workload.Namespace)}
}

// namespaceScope returns the name of a namespace, or of all, in messages and for readiness.
func namespaceScope(name string) string {
	if name == metav1.NamespaceAll {
		return "namespaces"
	}
	return "namespace " + name
}

// Get returns the settings of a namespace.
func (n *Namespaces) Get(name string) workload.Namespace {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byName[name]
}

// Set records the annotations of a namespace, nil if it was deleted.
func (n *Namespaces) Set(ctx context.Context, name string, annotations map[string]string) {
	now := workload.ReadNamespace(name, annotations)
	n.mu.Lock()
	same := now.Same(n.byName[name])
	n.byName[name] = now
	if now.Same(workload.Namespace{}) {
		delete(n.byName, name) // There may be thousands without settings.
	}
	n.mu.Unlock()
	if same {
		return
	}
	if err := now.Invalid(); err != nil {
		n.log.WarnContext(ctx, "invalid annotation of a namespace; its workloads are not rolled until it is fixed", "namespace", name,
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

// namespaceStore contains the namespaces of a scope: one, or all. It belongs to run.
type namespaceStore struct {
	*Namespaces
	scope string
	// refusals counts the consecutive refusals for a missing permission.
	refusals int
}

// names lists the namespaces of the scope with settings, in no order.
func (s *namespaceStore) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	isOther := func(name string) bool { return s.scope != metav1.NamespaceAll && s.scope != name }
	return slices.DeleteFunc(slices.Collect(maps.Keys(s.byName)), isOther)
}

// poll reads one namespace periodically until the context is done or the permission is missing.
func (s *namespaceStore) poll(ctx context.Context) {
	for failing := false; ctx.Err() == nil; {
		found, err := s.client.CoreV1().Namespaces().Get(ctx, s.scope, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			found, err = &corev1.Namespace{}, nil // A deleted namespace has no settings.
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

// reflect watches the namespaces of the scope. It returns nil when the context is done, or the refusal if the permission is missing.
func (s *namespaceStore) reflect(ctx context.Context) (refusal error) {
	client, selector := s.client.CoreV1().Namespaces(), ""
	if s.scope != metav1.NamespaceAll {
		selector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.scope).String()
	}
	// A reflector would log each refusal as an error.
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

// answered records that the settings of the namespaces in the scope are known.
func (s *namespaceStore) answered() {
	s.refusals = 0
	s.lists.Listed(namespaceScope(s.scope))
}

// refused records a refusal, and returns the delay before the next attempt. Once the permission counts as missing, nothing waits for these settings.
// Earlier settings stay, because the loss of a permission must not end a hold.
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
