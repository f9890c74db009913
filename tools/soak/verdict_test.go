package main

import (
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// The workload of these tests reads key a of secret/db and all of configmap/app. The soak begins after version 9.
var web = reader{name: "deployment/web", reads: map[string][]string{"secret/db": {"a"}, "configmap/app": nil}}

const prepared = 9

// clock returns the time at which a version is written: its number in seconds.
func clock(version int64) time.Time { return time.Unix(version, 0) }

// scene has what happened to the workload after the preparation, in the order of the versions.
type scene struct {
	journal journal
	told    told
}

// newScene returns the initial state: both sources, and the workload, which was rolled for both.
func newScene() *scene {
	s := &scene{journal: journal{writes: make(map[string][]write), patches: make(map[string][]patch)}, told: newTold()}
	s.wrote(1, "secret/db", map[string]string{"a": "1", "b": "1"})
	s.wrote(2, "configmap/app", map[string]string{"x": "1"})
	s.patched(3, patch{renewed: true})
	s.wrote(4, "secret/db", map[string]string{"a": "2", "b": "1"})
	s.wrote(5, "configmap/app", map[string]string{"x": "2"})
	s.rolled(prepared, 4, 5)
	return s
}

func (s *scene) wrote(version int64, source string, content map[string]string) {
	s.journal.writes[source] = append(s.journal.writes[source], write{version: version, at: clock(version), content: content})
}

func (s *scene) db(version int64, a, b string) {
	s.wrote(version, "secret/db", map[string]string{"a": a, "b": b})
}

func (s *scene) app(version int64, x string) {
	s.wrote(version, "configmap/app", map[string]string{"x": x})
}

func (s *scene) patched(version int64, p patch) {
	p.version, p.at = version, clock(version)
	s.journal.patches[web.name] = append(s.journal.patches[web.name], p)
}

// rolled adds a roll by Keyturn for versions of both sources, which HISTORY has.
func (s *scene) rolled(version, db, app int64) {
	s.silentlyRolled(version, db, app)
	s.told.add(events.Outcome{
		Workload: events.Workload{Kind: "deployment", Name: "web"}, Verb: events.VerbStarted,
		Revision: strconv.FormatInt(version, 10), StartedAt: clock(version),
	})
}

func (s *scene) silentlyRolled(version, db, app int64) {
	s.patched(version, patch{
		rolled: true, renewed: true, revision: strconv.FormatInt(version, 10), record: map[string]int64{"secret/db": db, "configmap/app": app},
	})
}

// recorded adds a patch of only the record.
func (s *scene) recorded(version, db, app int64) {
	s.patched(version, patch{record: map[string]int64{"secret/db": db, "configmap/app": app}})
}

// edited adds a change of the pod template by somebody else.
func (s *scene) edited(version, db, app int64) {
	s.patched(version, patch{renewed: true, record: map[string]int64{"secret/db": db, "configmap/app": app}})
}

func (s *scene) skipped(source string, version int64) {
	s.told.add(skip(source, version, "up-to-date"))
}

func skip(source string, version int64, reason string) events.Outcome {
	return events.Outcome{
		Workload: events.Workload{Kind: "deployment", Name: "web"}, Verb: events.VerbSkipped, Reason: reason,
		Sources: []events.OutcomeSource{{Source: source, ResourceVersion: strconv.FormatInt(version, 10)}},
	}
}

func TestVerdict(t *testing.T) {
	// wrong is an incident without its texts.
	type wrong struct {
		Ill     ill
		Source  string
		Version int64
	}
	for _, tt := range []struct {
		name string
		play func(*scene)
		amis []window
		want []wrong
	}{
		{name: "a roll for each change", play: func(s *scene) {
			s.db(10, "3", "1")
			s.rolled(11, 10, 5)
			s.app(12, "3")
			s.rolled(13, 10, 12)
		}},
		{name: "a change without a roll is lost", play: func(s *scene) { s.db(10, "3", "1") }, want: []wrong{{lost, "secret/db", 10}}},
		{name: "the first of several changes without a roll is reported", play: func(s *scene) {
			s.db(10, "3", "1")
			s.rolled(11, 10, 5)
			s.db(12, "4", "1")
			s.db(14, "5", "1")
		}, want: []wrong{{lost, "secret/db", 12}}},
		{name: "a change of a key that is not read needs no roll", play: func(s *scene) { s.db(10, "2", "9") }},
		{name: "changes are merged in one roll", play: func(s *scene) {
			s.db(10, "3", "1")
			s.db(11, "4", "1")
			s.app(12, "3")
			s.rolled(13, 11, 12)
		}},
		{name: "a change during the patch that is recorded later", play: func(s *scene) {
			s.db(10, "3", "1")
			s.db(11, "4", "1")
			s.rolled(12, 10, 5)
			s.recorded(13, 11, 5)
		}},
		{name: "a change that changed back needs no roll", play: func(s *scene) {
			s.db(10, "3", "1")
			s.db(11, "2", "1")
		}},
		{name: "the loss of what changed back and changed again begins with the last change", play: func(s *scene) {
			s.db(10, "3", "1")
			s.db(11, "2", "1")
			s.db(12, "3", "1")
		}, want: []wrong{{lost, "secret/db", 12}}},
		{name: "pods of a later template, with a reason in HISTORY", play: func(s *scene) {
			s.db(10, "3", "1")
			s.edited(11, 4, 5)
			s.skipped("secret/db", 10)
		}},
		{name: "pods of a later template do not hide that nobody noticed the change", play: func(s *scene) {
			s.db(10, "3", "1")
			s.edited(11, 4, 5)
		}, want: []wrong{{lost, "secret/db", 10}}},
		{name: "a reason for an earlier change is none for a later one", play: func(s *scene) {
			s.db(10, "3", "1")
			s.skipped("secret/db", 10)
			s.db(11, "4", "1")
			s.edited(12, 4, 5)
			s.skipped("configmap/app", 12)
		}, want: []wrong{{lost, "secret/db", 11}}},
		{name: "that a key is not read is no reason for another key", play: func(s *scene) {
			s.db(10, "3", "1")
			s.edited(11, 4, 5)
			s.db(12, "3", "2")
			s.told.add(skip("secret/db", 12, "keys-not-consumed"))
		}, want: []wrong{{lost, "secret/db", 10}}},
		{name: "a record without pods of the change loses it", play: func(s *scene) {
			s.db(10, "3", "1")
			s.recorded(11, 10, 5)
		}, want: []wrong{{lost, "secret/db", 10}}},
		{name: "a second roll for one change is doubled", play: func(s *scene) {
			s.db(10, "3", "1")
			s.rolled(11, 10, 5)
			s.rolled(12, 10, 5)
		}, want: []wrong{{doubled, "", 12}}},
		{name: "a roll for a key that is not read is doubled", play: func(s *scene) {
			s.db(10, "2", "9")
			s.rolled(11, 10, 5)
		}, want: []wrong{{doubled, "", 11}}},
		{name: "a roll for a write of after it is doubled, and does not lose the change", play: func(s *scene) {
			s.rolled(10, 11, 5)
			s.db(11, "2", "1")
		}, want: []wrong{{doubled, "", 10}}},
		{name: "a record that goes back and is rolled again is doubled", play: func(s *scene) {
			s.db(10, "3", "1")
			s.rolled(11, 10, 5)
			s.rolled(12, 4, 5)
		}, want: []wrong{{lost, "secret/db", 10}, {doubled, "", 12}}},
		{name: "a roll that HISTORY does not know is untold", play: func(s *scene) {
			s.db(10, "3", "1")
			s.silentlyRolled(11, 10, 5)
		}, want: []wrong{{untold, "", 11}}},
		{name: "a roll that HISTORY does not know, while it was lost", play: func(s *scene) {
			s.db(10, "3", "1")
			s.silentlyRolled(11, 10, 5)
		}, amis: []window{{clock(10), clock(11)}}},
		{name: "a roll after HISTORY was lost is untold", play: func(s *scene) {
			s.db(10, "3", "1")
			s.silentlyRolled(11, 10, 5)
		}, amis: []window{{clock(8), clock(10)}}, want: []wrong{{untold, "", 11}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene()
			tt.play(s)
			e := evidence{journal: s.journal, readers: []reader{web}, from: prepared, told: s.told, amiss: tt.amis}
			var got []wrong
			for _, i := range e.verdict() {
				got = append(got, wrong{i.ill, i.source, i.version})
				if i.workload != web.name || i.detail == "" || i.version != 0 && !i.at.Equal(clock(i.version)) {
					t.Errorf("the incident lacks something: %+v", i)
				}
			}
			testkit.WantEqual(t, "incidents", tt.want, got)
		})
	}
}

func TestAWorkloadThatWasNeverSeenIsLost(t *testing.T) {
	e := evidence{journal: newScene().journal, readers: []reader{{name: "deployment/other"}}}
	if found := e.verdict(); count(found, lost) != 1 {
		t.Errorf("got %+v, want a loss", found)
	}
}
