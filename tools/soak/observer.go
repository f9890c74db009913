package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testbed"
)

// The annotations that Keyturn writes on a workload.
const (
	rolledAnnotation   = "keyturn.dev/rolled"
	revisionAnnotation = "keyturn.dev/revision"
)

// resources are the plurals of the kinds that the observer watches.
var resources = []string{"secrets", "configmaps", "deployments", "statefulsets", "daemonsets"}

// observer writes the journal. It reads every version of every object from etcd, and so also sees writes whose response was lost, and
// patches that were followed immediately by another one.
type observer struct {
	mu      sync.Mutex
	journal journal
	// seen has the last seen version of each resource, and templates the last pod template of each workload.
	seen      map[string]int64
	templates map[string]corev1.PodTemplateSpec
}

func newObserver() *observer {
	return &observer{
		journal:   journal{writes: make(map[string][]write), patches: make(map[string][]patch)},
		seen:      make(map[string]int64),
		templates: make(map[string]corev1.PodTemplateSpec),
	}
}

// run watches until ctx is done.
func (o *observer) run(ctx context.Context, cp *testbed.ControlPlane, namespace string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	for _, resource := range resources {
		running.Go(func() {
			err := cp.Revisions(ctx, resource, namespace, 0, func(revision testbed.Revision) error {
				return o.see(resource, revision, time.Now())
			})
			if err != nil {
				stop(err)
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// see adds a version of an object to the journal.
func (o *observer) see(resource string, revision testbed.Revision, at time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[resource] = revision.Version
	switch object := revision.Object.(type) {
	case *corev1.Secret:
		content := make(map[string]string, len(object.Data))
		for key, value := range object.Data {
			content[key] = string(value)
		}
		o.wrote("secret/"+revision.Name, write{version: revision.Version, at: at, content: content})
	case *corev1.ConfigMap:
		o.wrote("configmap/"+revision.Name, write{version: revision.Version, at: at, content: object.Data})
	case *appsv1.Deployment:
		return o.patched("deployment/"+revision.Name, revision.Version, at, object.ObjectMeta, object.Spec.Template)
	case *appsv1.StatefulSet:
		return o.patched("statefulset/"+revision.Name, revision.Version, at, object.ObjectMeta, object.Spec.Template)
	case *appsv1.DaemonSet:
		return o.patched("daemonset/"+revision.Name, revision.Version, at, object.ObjectMeta, object.Spec.Template)
	default:
		return fmt.Errorf("%s %s, version %d, is a %T: nothing should delete it", resource, revision.Name, revision.Version, object)
	}
	return nil
}

func (o *observer) wrote(source string, w write) {
	o.journal.writes[source] = append(o.journal.writes[source], w)
}

// patched adds a version of a workload, unless only the status has changed.
func (o *observer) patched(name string, version int64, at time.Time, meta metav1.ObjectMeta, template corev1.PodTemplateSpec) error {
	p := patch{version: version, at: at, revision: template.Annotations[revisionAnnotation]}
	var err error
	if p.record, err = parseRecord(meta.Annotations[rolledAnnotation]); err != nil {
		return fmt.Errorf("%s, version %d: %w", name, version, err)
	}
	before, known := o.templates[name]
	p.renewed = !known || !equality.Semantic.DeepEqual(before, template)
	p.rolled = known && p.revision != before.Annotations[revisionAnnotation]
	o.templates[name] = template
	patches := o.journal.patches[name]
	if !p.renewed && maps.Equal(patches[len(patches)-1].record, p.record) {
		return nil
	}
	o.journal.patches[name] = append(patches, p)
	return nil
}

// parseRecord returns the versions in a record: its entries are <fingerprint>@<resourceVersion>/<uid>#<scope>.
func parseRecord(annotation string) (map[string]int64, error) {
	if annotation == "" {
		return nil, nil
	}
	var entries map[string]string
	if err := json.Unmarshal([]byte(annotation), &entries); err != nil {
		return nil, fmt.Errorf("its record is not readable: %w", err)
	}
	record := make(map[string]int64, len(entries))
	for source, entry := range entries {
		_, rest, _ := strings.Cut(entry, "@")
		text, _, _ := strings.Cut(rest, "/")
		version, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("its record of %s has no version: %w", source, err)
		}
		record[source] = version
	}
	return record, nil
}

// now returns a copy of the journal.
func (o *observer) now() journal {
	o.mu.Lock()
	defer o.mu.Unlock()
	j := journal{writes: make(map[string][]write, len(o.journal.writes)), patches: make(map[string][]patch, len(o.journal.patches))}
	for source, writes := range o.journal.writes {
		j.writes[source] = slices.Clip(writes)
	}
	for name, patches := range o.journal.patches {
		j.patches[name] = slices.Clip(patches)
	}
	return j
}

// behind returns a resource that has a version in etcd that has not been seen yet, or "" if there is none.
func (o *observer) behind(ctx context.Context, cp *testbed.ControlPlane, namespace string) (string, error) {
	for _, resource := range resources {
		newest, err := cp.NewestRevision(ctx, resource, namespace)
		if err != nil {
			return "", err
		}
		o.mu.Lock()
		seen := o.seen[resource]
		o.mu.Unlock()
		if seen < newest {
			return resource, nil
		}
	}
	return "", nil
}
