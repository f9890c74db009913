//go:build !race

package actuate_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// watcher publishes what becomes of Secrets and ConfigMaps, as the program of this name does. It holds the contents of the sources.
type watcher struct {
	t       *testing.T
	cluster *cluster
	bus     *events.Bus
	sources map[string]*source
	// objects counts the objects that were made, for their UIDs.
	objects int
}

// source is a Secret or a ConfigMap, and what the stream has of it.
type source struct {
	data      map[string]string // nil: there is none
	published events.Change
	seq       uint64
}

func newWatcher(t *testing.T, c *cluster, bus *events.Bus) *watcher {
	return &watcher{t: t, cluster: c, bus: bus, sources: make(map[string]*source)}
}

// observe publishes sources with some content, as they are found when a cluster is first watched.
func (w *watcher) observe(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.publish(name, map[string]string{"password": "one", "user": "app"}, nil)
	}
}

// set changes a key of a source, which is made if there is none: "secret/db", "office/configmap/app".
func (w *watcher) set(name, key, value string) {
	w.t.Helper()
	data := maps.Clone(w.of(name).data)
	if data == nil {
		data = make(map[string]string)
	}
	data[key] = value
	w.publish(name, data, nil)
}

// unset removes a key of a source.
func (w *watcher) unset(name, key string) {
	w.t.Helper()
	data := maps.Clone(w.of(name).data)
	delete(data, key)
	w.publish(name, data, nil)
}

// erase deletes a source.
func (w *watcher) erase(name string) {
	w.t.Helper()
	w.publish(name, nil, nil)
}

// mark publishes a source with other annotations than its content has, for example with one that puts it on hold.
func (w *watcher) mark(name string, how func(*events.Change)) {
	w.t.Helper()
	w.publish(name, w.of(name).data, how)
}

// again publishes the last event of a source once more, as after the loss of the stream.
func (w *watcher) again(name string) {
	w.t.Helper()
	s := w.of(name)
	s.seq = w.send(s.published, 0)
}

func (w *watcher) of(name string) *source {
	s := w.sources[name]
	if s == nil {
		s = &source{}
		w.sources[name] = s
	}
	return s
}

// publish publishes the content of a source, nil if it is deleted.
func (w *watcher) publish(name string, data map[string]string, how func(*events.Change)) {
	w.t.Helper()
	s := w.of(name)
	before, known := s.published, s.seq != 0
	existed := known && before.Verb != events.VerbDeleted
	change := events.Change{Cluster: "demo", Source: sourceNamed(name), Verb: events.VerbObserved, Time: time.Now(), WrittenAt: time.Now().Truncate(time.Second)}
	change.ResourceVersion, change.UID = w.cluster.nextVersion(), before.UID
	if !existed {
		w.objects++
		change.UID = "uid-" + strconv.Itoa(w.objects)
	}
	change.ChangedAt, change.CreatedAt = before.ChangedAt, before.CreatedAt
	if data == nil {
		change.Verb, change.Keys, change.Fingerprint = events.VerbDeleted, before.Keys, before.Fingerprint
	} else if change.Keys, change.Fingerprint = fingerprints(data); known {
		for key, print := range change.Keys {
			print.ChangedAt = before.Keys[key].ChangedAt
			if before.Keys[key].Fingerprint != print.Fingerprint {
				print.ChangedAt = change.ResourceVersion
				change.Changed = append(change.Changed, key)
			}
			change.Keys[key] = print
		}
		for key, print := range before.Keys {
			if _, kept := change.Keys[key]; !kept && print.Fingerprint != "" {
				change.Keys[key] = events.Key{ChangedAt: change.ResourceVersion}
				change.Changed = append(change.Changed, key)
			}
		}
		slices.Sort(change.Changed)
		if !existed {
			change.Verb, change.Created, change.CreatedAt, change.Previous = events.VerbChanged, true, change.ResourceVersion, before.Fingerprint
		}
		if change.Fingerprint != before.Fingerprint {
			change.Verb, change.ChangedAt, change.Previous = events.VerbChanged, change.ResourceVersion, before.Fingerprint
		}
	}
	if how != nil {
		how(&change)
	}
	s.data, s.published = data, change
	s.seq = w.send(change, s.seq)
}

// send publishes an event after the one with the expected sequence.
func (w *watcher) send(change events.Change, expected uint64) (seq uint64) {
	w.t.Helper()
	natstest.Publish(w.t, func() (err error) {
		seq, err = w.bus.PublishChange(w.t.Context(), change, expected)
		return err
	})
	return seq
}

// sourceNamed returns the source with the name that it has in a scene.
func sourceNamed(name string) events.Source {
	parts := strings.Split(name, "/")
	s := events.Source{Kind: events.Kind(parts[len(parts)-2]), Namespace: namespace, Name: parts[len(parts)-1]}
	if len(parts) == 3 {
		s.Namespace = parts[0]
	}
	return s
}

// fingerprints returns those of a content: of each key, and of all.
func fingerprints(data map[string]string) (keys map[string]events.Key, all string) {
	sum := func(text string) string {
		digest := fnv.New128a()
		digest.Write([]byte(text))
		return fmt.Sprintf("k0a1b2c3d:%x", digest.Sum(nil))
	}
	keys = make(map[string]events.Key, len(data))
	var whole strings.Builder
	for _, name := range slices.Sorted(maps.Keys(data)) {
		keys[name] = events.Key{Fingerprint: sum(name + "=" + data[name])}
		fmt.Fprintf(&whole, "%s=%q ", name, data[name])
	}
	return keys, sum(whole.String())
}
