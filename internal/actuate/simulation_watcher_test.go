package actuate

import (
	"maps"
	"strconv"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// timeOf returns when a version was written.
func timeOf(version int) time.Time { return written.Add(time.Duration(version) * time.Second) }

func (s *simulation) change(source *simulatedSource) {
	name, value, n := []string{"a", "b", "c"}[s.random.IntN(3)], strconv.Itoa(s.random.IntN(3)), s.random.IntN(10)
	data := maps.Clone(source.data)
	switch {
	case data == nil:
		source.uid++
		data = maps.Clone(source.said)
		if data == nil {
			data = map[string]string{"a": "0", "b": "0", "c": "0"}
		}
		if n < 5 {
			data[name] = value
		}
	case n < 2 && !s.calm:
		data = nil
	case n < 4:
		delete(data, name)
	default:
		data[name] = value
	}
	before, _ := source.read()
	source.data, source.version = data, s.version
	if after, _ := source.read(); after != before {
		source.changedAt = s.version
	}
	s.notef("%d: %s is %v", s.version, source, data)
	if s.calm {
		s.watch(source)
	}
}

// watch publishes the state of a source, as a watcher does.
func (s *simulation) watch(source *simulatedSource) {
	before, known := source.event, source.said != nil
	gone, same := before.Verb == events.VerbDeleted, known && maps.Equal(source.said, source.data)
	change := events.Change{
		Source: source.Source, Verb: events.VerbObserved, UID: "uid-" + strconv.Itoa(source.uid), ResourceVersion: strconv.Itoa(source.version),
		ChangedAt: before.ChangedAt, CreatedAt: before.CreatedAt, WrittenAt: timeOf(source.version),
	}
	switch {
	case source.data == nil && (gone || !known), same && !gone:
		return
	case source.data == nil:
		change = before
		change.Verb, change.Changed, change.Previous, change.Time = events.VerbDeleted, nil, "", timeOf(s.version)
	default:
		change.Keys, change.Fingerprint = printsOf(source.data)
		if known && !same {
			change.Verb, change.ChangedAt, change.Previous, change.Created = events.VerbChanged, change.ResourceVersion, before.Fingerprint, gone
		}
		if !known && source.lost && source.uid != source.lostUID {
			change.Verb, change.ChangedAt, change.CreatedAt, change.Created = events.VerbChanged, change.ResourceVersion, change.ResourceVersion, true
		}
		for _, name := range []string{"a", "b", "c"} {
			was, wasThere := source.said[name]
			is, isThere := source.data[name]
			k := events.Key{Fingerprint: change.Keys[name].Fingerprint, ChangedAt: before.Keys[name].ChangedAt}
			if known && (was != is || wasThere != isThere) {
				change.Changed = append(change.Changed, name)
				k.ChangedAt = change.ResourceVersion
			}
			if k != (events.Key{}) {
				change.Keys[name] = k
			}
		}
		source.said = source.data
	}
	_, recorded := s.w.Rolled[source.String()]
	if source.seq > 0 {
		source.superseded = append(source.superseded, source.last())
		isBase := before.ResourceVersion == s.base[source.Source].Version // Only its own time says that it came while nobody led.
		source.unknown = source.unknown || isBase && !recorded && !source.acked && source.told != source.pods
	}
	source.event, source.acked, source.sent = change, false, false
	source.seq, source.storedAt = source.seq+1, s.version
	content, _ := source.read()
	switch {
	case content == source.told:
	case content == source.had: // It is back with that.
		source.told, source.toldAt = content, source.hadAt
	default:
		source.told, source.toldAt = content, source.version
	}
	if change.Verb != events.VerbDeleted {
		source.had, source.hadAt = source.told, source.toldAt
		if !known && change.CreatedAt == "" && !recorded {
			source.unknown = content != source.pods
		}
		source.contents[change.ID()] = content
		if _, before := source.publishedAt[content]; !before {
			source.publishedAt[content] = s.version
		}
	}
	s.notef("  %s %s %s", change.Source, change.Verb, change.ID())
}
