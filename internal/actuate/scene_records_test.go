//go:build !race

package actuate_test

import (
	"encoding/json"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/workload"
)

// These are the words for records, for what watches show late, and for what becomes of sources and events.

// wantWrites wants these patches to have been applied since a want last compared them, in any order, and no others: "web rolled", or "web recorded"
// if a patch writes a record alone.
func (s *scene) wantWrites(writes ...string) {
	s.Helper()
	var got []string
	for _, w := range s.writesSince(&s.seen) {
		if w.rolls {
			got = append(got, w.workload+" rolled")
		} else {
			got = append(got, w.workload+" recorded")
		}
	}
	slices.Sort(got)
	slices.Sort(writes)
	if diff := cmp.Diff(writes, got); diff != "" {
		s.Errorf("patched after %s (-want +got):\n%s", s.elapsed(), diff)
	}
}

// recordOf returns the record of a workload, by source.
func (s *scene) recordOf(name string) map[string]string {
	s.Helper()
	text, record := s.annotation(name, annotationRecord), make(map[string]string)
	if text == "" {
		return record
	}
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		s.Fatalf("the record of %s: %v", name, err)
	}
	return record
}

// wantRecord wants the record of a workload to say that its pods have all of a source as it is now.
func (s *scene) wantRecord(name, source string) {
	s.Helper()
	if got, want := s.recordOf(name)[sourceNamed(source).String()], s.whole(source); got != want {
		s.Errorf("after %s, the record of %s says of %s: %q, want %q", s.elapsed(), name, source, got, want)
	}
}

// whole returns the entry in the record of a workload whose pods have all of a source as it is now.
func (w *watcher) whole(name string) string {
	last := w.of(name).published
	entry := workload.RolledFor{Fingerprint: last.Fingerprint, Version: last.ChangedAt, UID: last.UID, Scope: workload.ScopeOf(nil)}
	if entry.Version == "" {
		entry.Version = workload.NoVersion
	}
	return entry.String()
}

// reserve returns a moment in the history of the cluster, for at.
func (c *cluster) reserve() (moment int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const enough = 20 // for what is written at that moment, and what follows from it
	moment = c.version
	c.version += enough
	return moment
}

// at writes something at an earlier moment: its resourceVersions are before those of everything since, and the watches show it only now.
func (c *cluster) at(moment int, write func()) {
	c.t.Helper()
	set := func(version int) (before int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		before, c.version = c.version, version
		return before
	}
	now := set(moment)
	write()
	set(now)
}
