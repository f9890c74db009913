package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// dataKeys is how many data keys a source has.
const dataKeys = 4

// firstVersion is less than every resourceVersion.
const firstVersion = 1_000_000

// change returns a watcher's event about a source: at first, that it was observed, and later, that one of its keys has
// changed.
func (c *cluster) change(i int) events.Change {
	version := strconv.Itoa(firstVersion + i + c.versions[i]*len(c.versions))
	change := events.Change{
		Cluster: c.name,
		Source:  events.Source{Kind: events.KindSecret, Namespace: fmt.Sprintf("team-%02d", i%40), Name: fmt.Sprintf("credentials-%04d", i)},
		Verb:    events.VerbObserved, UID: fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i), ResourceVersion: version, Time: time.Now(),
		Fingerprint: fingerprint(), Keys: make(map[string]events.Key, dataKeys), WrittenAt: time.Now(),
		Trace: events.TraceContext{Parent: fmt.Sprintf("00-%016x%016x-%016x-01", rand.Uint64(), rand.Uint64(), rand.Uint64())},
	}
	if i%2 == 1 {
		change.Source.Kind = events.KindConfigMap
	}
	for key := range dataKeys {
		change.Keys[fmt.Sprintf("key-%d", key)] = events.Key{Fingerprint: fingerprint()}
	}
	if c.versions[i] > 1 {
		change.Verb, change.Changed, change.ChangedAt, change.Previous = events.VerbChanged, []string{"key-0"}, version, fingerprint()
		change.Keys["key-0"] = events.Key{Fingerprint: fingerprint(), ChangedAt: version}
	}
	return change
}

// last returns the cluster's last event on the stream.
func (c *cluster) last() events.Change {
	var last int
	for i, seq := range c.sequences {
		if seq > c.sequences[last] {
			last = i
		}
	}
	return c.change(last)
}

// errID is the error of an id that cannot be from the generator.
var errID = errors.New("the id is not one of the generator's")

// parseID returns the source that an event of the cluster is about, and how often the source had changed. The id is that of the message.
func (c *cluster) parseID(id string) (source, version int, err error) {
	parts := strings.Split(id, "/")
	if len(parts) != 3 || parts[0] != c.name {
		return 0, 0, errID
	}
	number, _, _ := strings.Cut(parts[1], "-")
	index, err := strconv.ParseUint(number, 16, 32)
	if err != nil || index >= uint64(len(c.versions)) {
		return 0, 0, errID
	}
	// If an event was lost and stored again, its id is followed by a number.
	text, _, _ := strings.Cut(parts[2], "@")
	resource, err := strconv.Atoi(text)
	if err != nil {
		return 0, 0, errID
	}
	source = int(index)
	return source, (resource - firstVersion - source) / len(c.versions), nil
}

// fingerprint returns a random fingerprint, as incompressible as a real one.
func fingerprint() string { return fmt.Sprintf("k0a1b2c3d:%016x%016x", rand.Uint64(), rand.Uint64()) }
