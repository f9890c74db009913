//go:build !race

package actuate_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// watcher publishes what becomes of Secrets and ConfigMaps, as the program of this name does. It holds the contents of the sources.
type watcher struct {
	t       *testing.T
	cluster *cluster
	bus     *bus.Bus
	sources map[string]*source
	// objects counts the objects that were made, for their UIDs.
	objects int
}

// source is a Secret or a ConfigMap.
type source struct {
	data map[string]string // nil: there is none
	// published is the last event of it. It has no UID if there was none.
	published events.Change
}

func newWatcher(t *testing.T, c *cluster, b *bus.Bus) *watcher {
	return &watcher{t: t, cluster: c, bus: b, sources: make(map[string]*source)}
}

// firstContent is what sources have that are observed.
func firstContent() map[string]string { return map[string]string{"password": "one", "user": "app"} }

// observe publishes sources as they are found when a cluster is first watched.
func (w *watcher) observe(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.find(name, firstContent())
	}
}

// find publishes a source as a watcher does that finds it, and no event of it: the cluster is first watched, or the stream has lost the event.
func (w *watcher) find(name string, data map[string]string, how ...func(*events.Change)) {
	w.t.Helper()
	w.tell(name, data, w.describe(name, data), how...)
}

// appear publishes sources that somebody makes while the cluster is watched, or makes again, with the content of those that are observed.
func (w *watcher) appear(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.publish(name, firstContent())
	}
}

// set changes a key of a source, which is made if there is none: "secret/db", "office/configmap/app".
func (w *watcher) set(name, key, value string, how ...func(*events.Change)) {
	w.t.Helper()
	data := maps.Clone(w.of(name).data)
	if data == nil {
		data = make(map[string]string)
	}
	data[key] = value
	w.publish(name, data, how...)
}

// unset removes a key of a source.
func (w *watcher) unset(name, key string) {
	w.t.Helper()
	data := maps.Clone(w.of(name).data)
	delete(data, key)
	w.publish(name, data)
}

// erase deletes a source.
func (w *watcher) erase(name string) {
	w.t.Helper()
	w.publish(name, nil)
}

// mark publishes a source with other annotations than its content has, for example with one that puts it on hold.
func (w *watcher) mark(name string, how ...func(*events.Change)) {
	w.t.Helper()
	w.publish(name, w.of(name).data, how...)
}

// asIgnored says of an event that its source is ignored, and sourceHeld that it is on hold.
func asIgnored(change *events.Change) { change.Ignore = true }

func sourceHeld(text string) func(*events.Change) {
	return func(change *events.Change) { change.Hold = text }
}

// again publishes the last events of sources once more, whatever the stream has of them, as a watcher does that finds that the stream has lost them.
func (w *watcher) again(names ...string) {
	w.t.Helper()
	for _, name := range names {
		change := w.of(name).published
		change.Previous = ""
		if change.Verb != events.VerbDeleted {
			change.Time = time.Now()
		}
		w.send(change)
	}
}

func (w *watcher) of(name string) *source {
	s := w.sources[name]
	if s == nil {
		s = &source{}
		w.sources[name] = s
	}
	return s
}

// publish publishes the content of a source, nil if it is deleted, compared with the last event.
func (w *watcher) publish(name string, data map[string]string, how ...func(*events.Change)) {
	w.t.Helper()
	before := w.of(name).published
	if data == nil {
		w.tell(name, nil, gone(before), how...)
		return
	}
	w.tell(name, data, compared(before, w.describe(name, data)), how...)
}

func (w *watcher) tell(name string, data map[string]string, change events.Change, how ...func(*events.Change)) {
	w.t.Helper()
	for _, differs := range how {
		differs(&change)
	}
	s := w.of(name)
	s.data, s.published = data, change
	w.send(change)
}

// describe returns the event of a source of which there was none.
func (w *watcher) describe(name string, data map[string]string) events.Change {
	change := events.Change{
		Cluster: "demo", Source: sourceNamed(name), Verb: events.VerbObserved, UID: w.of(name).published.UID,
		ResourceVersion: w.cluster.nextVersion(), Time: time.Now(), WrittenAt: time.Now().Truncate(time.Second),
	}
	if w.of(name).data == nil {
		w.objects++
		change.UID = "uid-" + strconv.Itoa(w.objects)
	}
	change.Keys, change.Fingerprint = fingerprints(data)
	return change
}

// gone returns the event of a deletion.
func gone(before events.Change) events.Change {
	return events.Change{
		Cluster: before.Cluster, Source: before.Source, Verb: events.VerbDeleted, UID: before.UID, ResourceVersion: before.ResourceVersion,
		Time: time.Now(), Keys: before.Keys, Fingerprint: before.Fingerprint, ChangedAt: before.ChangedAt, CreatedAt: before.CreatedAt,
		Ignore: before.Ignore,
	}
}

// compared returns the event of a source that a running watcher sees, compared with the one before, as the function compare of package sources does.
func compared(before, now events.Change) events.Change {
	if before.UID == "" {
		now.Verb, now.Created, now.CreatedAt, now.ChangedAt = events.VerbChanged, true, now.ResourceVersion, now.ResourceVersion
		now.Changed = slices.Sorted(maps.Keys(now.Keys))
		return now
	}
	var changed []string
	for key, print := range now.Keys {
		if before.Keys[key].Fingerprint != print.Fingerprint {
			changed = append(changed, key)
		}
	}
	for key, print := range before.Keys {
		still, kept := now.Keys[key]
		if !kept && print.Fingerprint != "" {
			changed = append(changed, key)
		}
		still.ChangedAt, still.Added = print.ChangedAt, print.Added
		now.Keys[key] = still
	}
	now.ChangedAt, now.CreatedAt = before.ChangedAt, before.CreatedAt
	isBack := before.Verb == events.VerbDeleted
	if isBack {
		now.CreatedAt, now.Previous = now.ResourceVersion, before.Fingerprint
	}
	if now.Fingerprint == before.Fingerprint {
		return now
	}
	now.Verb, now.Created, now.Previous, now.ChangedAt = events.VerbChanged, isBack, before.Fingerprint, now.ResourceVersion
	slices.Sort(changed)
	now.Changed = changed
	for _, key := range changed {
		print := now.Keys[key].Fingerprint
		_, had := before.Keys[key]
		now.Keys[key] = events.Key{Fingerprint: print, ChangedAt: now.ResourceVersion, Added: print != "" && !had}
	}
	return now
}

// send publishes an event after the last one that the stream has of its source.
func (w *watcher) send(change events.Change) {
	w.t.Helper()
	publishOn(w.t, w.bus, change)
}

// publishOn publishes an event on the bus of its cluster, after the last one that the stream has of its source.
func publishOn(t *testing.T, b *bus.Bus, change events.Change) {
	t.Helper()
	var last events.Stored
	natstest.Publish(t, func() (err error) {
		last, err = b.Last(t.Context(), events.Subject(change.Cluster, change.Source))
		if errors.Is(err, events.ErrNotFound) {
			return nil
		}
		return err
	})
	natstest.Publish(t, func() error {
		_, err := b.PublishChange(t.Context(), change, last.Seq)
		return err
	})
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
