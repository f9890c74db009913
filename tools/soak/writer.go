package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	// between is the mean time between two changes.
	between = 700 * time.Millisecond
	// answered is how long the API server may take to respond to a change.
	answered = 5 * time.Second
)

// change is one write of a source or of a workload.
type change struct {
	// source is the source that is changed, and set has the new values of its keys. If set is empty, only the metadata
	// changes.
	source source
	set    map[string]string
	// edited is the workload whose pod template is changed instead of a source.
	edited *member
	number int
	// then is the pause after the change.
	then time.Duration
}

// changes generates the changes. The same seed gives the same changes.
type changes struct {
	random *rand.Rand
	fleet  fleet
	made   int
	// burst is how many more changes follow without a pause.
	burst int
	// last has the values that were last set, and previous those before.
	last, previous map[source]map[string]string
}

func newChanges(random *rand.Rand, f fleet) *changes {
	c := &changes{random: random, fleet: f, last: make(map[source]map[string]string), previous: make(map[source]map[string]string)}
	for _, s := range f.sources {
		c.last[s], c.previous[s] = make(map[string]string), make(map[string]string)
	}
	return c
}

// next generates a change. Of ten changes, six set one key, one sets several, and one sets a key back to its previous value. One touches a
// source without changing its content, and one of every twenty edits a workload.
func (c *changes) next() change {
	c.made++
	made := change{source: c.fleet.sources[c.random.IntN(len(c.fleet.sources))], number: c.made, then: c.pause()}
	switch n := c.random.IntN(20); {
	case n < 12:
		made.set = c.fresh(made.source, 1)
	case n < 14:
		made.set = c.fresh(made.source, 2)
	case n < 15:
		made.set = c.fresh(made.source, len(keys))
	case n < 17:
		made.set = c.back(made.source)
	case n < 19:
	default:
		made.edited = &c.fleet.members[c.random.IntN(len(c.fleet.members))]
	}
	for key, value := range made.set {
		c.previous[made.source][key] = c.last[made.source][key]
		c.last[made.source][key] = value
	}
	return made
}

// all returns a change of every key of a source.
func (c *changes) all(s source) change {
	c.made++
	return change{source: s, number: c.made, set: c.fresh(s, len(keys))}
}

func (c *changes) fresh(s source, n int) map[string]string {
	set := make(map[string]string)
	for _, k := range c.random.Perm(len(keys))[:n] {
		set[keys[k]] = s.name + "-" + strconv.Itoa(c.made)
	}
	return set
}

func (c *changes) back(s source) map[string]string {
	key := keys[c.random.IntN(len(keys))]
	if before := c.previous[s][key]; before != "" {
		return map[string]string{key: before}
	}
	return c.fresh(s, 1)
}

func (c *changes) pause() time.Duration {
	if c.burst > 0 {
		c.burst--
		return 0
	}
	if c.random.IntN(40) == 0 {
		c.burst = 10
	}
	return time.Duration(c.random.Int64N(int64(2 * between)))
}

// writer writes changes. It need not know which of them have failed, because the journal has those that have succeeded.
type writer struct {
	client dynamic.Interface

	mu sync.Mutex
	// acknowledged has the versions that the API server has returned, by source.
	acknowledged map[string][]int64
}

// write writes a change.
func (w *writer) write(ctx context.Context, c change) error {
	ctx, cancel := context.WithTimeout(ctx, answered)
	defer cancel()
	noted := map[string]any{"annotations": map[string]string{"soak/number": strconv.Itoa(c.number)}}
	if c.edited != nil {
		// Like a release.
		template := map[string]any{"template": map[string]any{"metadata": noted}}
		_, err := w.patch(ctx, appsv1.SchemeGroupVersion, c.edited.kind, c.edited.name, map[string]any{"spec": template})
		return err
	}
	fields := map[string]any{"metadata": noted}
	switch {
	case c.set == nil:
	case c.source.kind == "secret":
		fields["stringData"] = c.set
	default:
		fields["data"] = c.set
	}
	version, err := w.patch(ctx, corev1.SchemeGroupVersion, c.source.kind, c.source.name, fields)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acknowledged[c.source.String()] = append(w.acknowledged[c.source.String()], version)
	return nil
}

// patch writes fields of an object, and returns its version.
func (w *writer) patch(ctx context.Context, group schema.GroupVersion, kind, name string, fields map[string]any) (int64, error) {
	body, err := json.Marshal(fields)
	if err != nil {
		return 0, fmt.Errorf("writing %s %s: %w", kind, name, err)
	}
	written, err := w.client.Resource(group.WithResource(kind+"s")).Namespace(namespace).
		Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return 0, fmt.Errorf("writing %s %s: %w", kind, name, err)
	}
	return strconv.ParseInt(written.GetResourceVersion(), 10, 64)
}

// missing returns the writes that the API server has acknowledged and that are not in the journal. If there are any, etcd has lost them, and
// no verdict is possible.
func (w *writer) missing(j journal) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var missing []string
	for source, versions := range w.acknowledged {
		known := make(map[int64]bool)
		for _, written := range j.writes[source] {
			known[written.version] = true
		}
		for _, version := range versions {
			if !known[version] {
				missing = append(missing, fmt.Sprintf("%s@%d", source, version))
			}
		}
	}
	return missing
}
