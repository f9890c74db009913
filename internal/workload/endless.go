package workload

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// A source that changes endlessly would roll a workload as often as the hourly limit allows. So consecutive rolls are counted, by source and by key:
// from some number on, they keep a distance that doubles from events.Soon to an hour. Unlike a daily limit, this does not delay other changes, and
// the last content, which may be a new password, still arrives.
const (
	// manyOfKey is how many consecutive rolls for one key count as endless. If the keys of a source take turns, manyOfKeys applies.
	manyOfKey, manyOfKeys = 12, 24
	// manyOfSource applies to a source without keys, and manyOfClass to a SecretProviderClass, whose content nobody can compare.
	manyOfSource, manyOfClass = 12, 4
	// longestDistance is reached after three further rolls.
	longestDistance = time.Hour
	// toldEvery is the number of further rolls after which a Kubernetes Event reports the slowdown again, after about a day.
	toldEvery = 24
	// maxStreaks is the maximum length of the streaks in the annotation, in bytes. The admission policies allow 2000.
	maxStreaks = 1600
)

// streak counts consecutive rolls for a source or a key, each for a change soon after the previous roll. The zero value means none.
type streak struct {
	count int
	// at is the time of the last one.
	at time.Time
}

// distance returns the shortest time from the last roll to the next one if that many rolls count as endless. It is zero before that number.
func (s streak) distance(many int) time.Duration {
	if s.count < many {
		return 0
	}
	return min(events.Soon<<min(s.count-many, 3), longestDistance)
}

// goesOn reports whether a roll for a change that arrived at since continues the streak. It does not after another long delay.
func (s streak) goesOn(since, rolled time.Time, many int) bool {
	distance := s.distance(many)
	return s.count > 0 && since.Before(s.at.Add(max(distance, events.Soon))) && rolled.Before(s.at.Add(distance+events.Soon))
}

// streaks contains the streaks by the names of sources, "secret/db", and of keys, "secret/db#ttl".
type streaks map[string]streak

// keyName returns the name of a key in streaks.
func keyName(source, key string) string { return source + "#" + key }

// howMany returns how many rolls for a source count as endless. Keys are its changed keys, if it has keys.
func howMany(source events.Source, keys []string) int {
	switch {
	case len(keys) > 0:
		return manyOfKeys
	case source.Kind == events.KindSecretProviderClass:
		return manyOfClass
	}
	return manyOfSource
}

// Slowdown is the time until which endless changes do not roll a workload. The zero value means that they do.
type Slowdown struct {
	Until time.Time
	// IsTold says that a Kubernetes Event reported it within about the last day.
	IsTold bool
}

// Slowdown returns until when the workload is not rolled for a source if nothing else has changed. Keys are the changed keys, none if the source has
// no keys. A key without a streak is not delayed by other keys. A limit or interval of the workload itself replaces the slowdown.
func (w *Workload) Slowdown(source events.Source, keys []string, now time.Time) Slowdown {
	if len(w.rolls.often) == 0 || !w.countsStreaks() {
		return Slowdown{}
	}
	name := source.String()
	slow := w.rolls.often[name].slowdown(howMany(source, keys), now)
	var first Slowdown
	for i, key := range keys {
		if one := w.rolls.often[keyName(name, key)].slowdown(manyOfKey, now); i == 0 || one.Until.Before(first.Until) {
			first = one
		}
	}
	if first.Until.After(slow.Until) {
		return first
	}
	return slow
}

// slowdown returns the slowdown of a streak. A streak with a time in the future has none.
func (s streak) slowdown(many int, now time.Time) Slowdown {
	until := s.at.Add(s.distance(many))
	if s.count < many || !now.Before(until) || s.at.After(now.Add(clockTolerance)) {
		return Slowdown{}
	}
	return Slowdown{until, (s.count-many)%toldEvery != 0}
}

// countsStreaks reports whether consecutive rolls are counted. They are not if rolls are unlimited, or if the workload has its own limit or interval.
func (w *Workload) countsStreaks() bool {
	return w.maxRolls.value > 0 && !w.maxRolls.own && !w.interval.own
}

// streaksAfter returns the streaks after a roll. A single roll begins no streak, because its mark remains.
func (w *Workload) streaksAfter(write Write) streaks {
	if !w.countsStreaks() {
		return nil
	}
	rolled, next := write.RolledAt, make(streaks)
	for name, s := range w.rolls.often {
		if rolled.Before(s.at.Add(s.distance(manyOfClass) + events.Soon)) {
			next[name] = s
		}
	}
	marked, last := w.ChangesIn(w.Last.For), streak{1, w.Last.At}
	for _, change := range write.Changes {
		name, since := change.Source.String(), change.Since
		if w.Reverts(name, write.Rolled[name]) > 0 {
			continue // The change is repeated.
		}
		if since.IsZero() {
			since = rolled
		}
		all := w.rolls.often[name]
		if _, isMarked := marked[name]; isMarked && all.count == 0 {
			all = last
		}
		goesOn := all.goesOn(since, rolled, howMany(change.Source, change.Keys))
		next.count(name, all, goesOn, last.goesOn(since, rolled, manyOfKeys), rolled)
		for _, key := range change.Keys {
			key = keyName(name, key)
			one := w.rolls.often[key]
			next.count(key, one, one.goesOn(since, rolled, manyOfKey), goesOn, rolled)
		}
	}
	return next
}

// count counts a roll in the streak of a name, or in a new one.
func (s streaks) count(name string, was streak, goesOn, begins bool, rolled time.Time) {
	switch {
	case goesOn:
		s[name] = streak{was.count + 1, roundedUp(rolled)}
	case begins:
		s[name] = streak{1, roundedUp(rolled)}
	default:
		delete(s, name)
	}
}

// String returns the text form: JSON with the longest streaks that fit, or "" if there are none. It is deterministic.
func (s streaks) String() string {
	longestFirst := func(a, b string) int {
		return cmp.Or(cmp.Compare(s[b].count, s[a].count), s[b].at.Compare(s[a].at), strings.Compare(a, b))
	}
	texts, size := make(map[string]string), 0
	for _, name := range slices.SortedFunc(maps.Keys(s), longestFirst) {
		text := counted(s[name].count, " at ", s[name].at)
		encoded, _ := json.Marshal(map[string]string{name: text}) // Texts can always be encoded.
		if size += len(encoded); size > maxStreaks {
			break
		}
		texts[name] = text
	}
	if len(texts) == 0 {
		return ""
	}
	encoded, _ := json.Marshal(texts)
	return string(encoded)
}

// parseStreaks reads the text form. Invalid text, as after a manual edit, counts as no streaks.
func parseStreaks(text string) streaks {
	var texts map[string]string
	if len(text) > maxStreaks || json.Unmarshal([]byte(text), &texts) != nil {
		return nil
	}
	read := make(streaks, len(texts))
	for name, text := range texts {
		if count, at, ok := parseCounted(text, " at "); ok {
			read[name] = streak{count, at}
		}
	}
	return read
}

// counted returns a number and a time as text.
func counted(count int, between string, at time.Time) string {
	return strconv.Itoa(count) + between + at.UTC().Format(time.RFC3339)
}

// parseCounted is the inverse of counted. It returns false for any other text.
func parseCounted(text, between string) (count int, at time.Time, ok bool) {
	number, moment, _ := strings.Cut(text, between)
	count, err := strconv.Atoi(number)
	at, atErr := time.Parse(time.RFC3339, moment)
	return count, at, err == nil && atErr == nil && count >= 1
}
