package main

import (
	"slices"
	"strings"
	"time"
)

// journal has what was written according to etcd: every version of every source, and every patch of every workload.
type journal struct {
	// writes has the versions of each source, and patches has the relevant versions of each workload, both in order. Sources are named
	// as in a workload's record: secret/db.
	writes  map[string][]write
	patches map[string][]patch
}

// write is one version of a source.
type write struct {
	version int64
	// at is when the version was seen.
	at time.Time
	// content has the value of each key.
	content map[string]string
}

// patch is a version of a workload whose pod template or record differs from that of the previous version.
type patch struct {
	version int64
	at      time.Time
	// rolled says that Keyturn caused the pods to be replaced, and renewed that anybody did. A roll has both.
	rolled, renewed bool
	// revision is the revision of Keyturn's last roll of the workload.
	revision string
	// record has the version of each source that the workload was rolled for.
	record map[string]int64
}

// reader is a workload with the keys that it reads of each source. No keys mean all of them.
type reader struct {
	name  string
	reads map[string][]string
}

// content returns what a reader of some keys, or of all, gets from a source at a version. It is only for comparisons.
func (j journal) content(source string, keys []string, version int64) string {
	last, found := write{}, false
	for _, w := range j.writes[source] {
		if w.version > version {
			break
		}
		last, found = w, true
	}
	if !found {
		return ""
	}
	return last.read(keys)
}

func (w write) read(keys []string) string {
	var text strings.Builder
	if keys == nil {
		for key := range w.content {
			keys = append(keys, key)
		}
		slices.Sort(keys)
	}
	for _, key := range keys {
		text.WriteString(key + "=" + w.content[key] + "\n")
	}
	return text.String()
}

// changes returns the writes after one version, up to another, that changed the content for readers of the keys.
func (j journal) changes(source string, keys []string, after, upTo int64) []write {
	var changes []write
	content, first := "", true
	for _, w := range j.writes[source] {
		if w.version > upTo {
			break
		}
		now := w.read(keys)
		if !first && now != content && w.version > after {
			changes = append(changes, w)
		}
		content, first = now, false
	}
	return changes
}

// firstUnrecorded returns the first write after one version, up to another, from which on the content for readers of the keys has
// always differed from before.
func (j journal) firstUnrecorded(source string, keys []string, after, upTo int64) write {
	before := j.content(source, keys, after)
	var first write
	for _, change := range j.changes(source, keys, after, upTo) {
		switch {
		case change.read(keys) == before:
			first = write{} // it changed back
		case first.version == 0:
			first = change
		}
	}
	return first
}

// newest returns the version of the last write of anything.
func (j journal) newest() int64 {
	var newest int64
	for _, writes := range j.writes {
		for _, w := range writes {
			newest = max(newest, w.version)
		}
	}
	for _, patches := range j.patches {
		for _, p := range patches {
			newest = max(newest, p.version)
		}
	}
	return newest
}

// rolls returns how often Keyturn rolled the workloads after a version.
func (j journal) rolls(after int64) int {
	n := 0
	for _, patches := range j.patches {
		for _, p := range patches {
			if p.rolled && p.version > after {
				n++
			}
		}
	}
	return n
}
