package plan

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// situation is a workload, the last event of a source that it reads, and what the leader remembers, all of it at random.
type situation struct {
	w      *workload.Workload
	now    events.Change
	memory Memory
	policy Policy
}

// situations is how many of them a test tries.
const situations = 20_000

func oneOf[T any](random *rand.Rand, list ...T) T { return list[random.IntN(len(list))] }

// randomly returns a situation of a workload that rolls on all that it reads.
func randomly(of *workload.Workload, seed uint64) situation {
	random := rand.New(rand.NewPCG(seed, 1))
	w := *of
	s := situation{w: &w, now: randomChange(random), policy: randomPolicy(random)}
	keys := oneOf(random, nil, []string{"password"}, []string{"user"}, []string{"password", "user"})
	ref := workload.Reference{Kind: events.KindSecret, Name: "db", Keys: keys, Optional: random.IntN(2) == 0}
	if !ref.Optional {
		ref.Required = keys
	}
	had := changeOf(func(c *events.Change) {
		c.ResourceVersion, c.ChangedAt, c.Fingerprint, c.Keys["password"] = "90", "90", fp("a"), events.Key{Fingerprint: fp("1"), ChangedAt: "90"}
	})
	w.Refs = []workload.Reference{ref}
	randomState(random, &w, had)
	s.memory = Memory{
		Now: written, Since: oneOf(random, time.Time{}, written.Add(-time.Second), written.Add(-time.Minute)), From: oneOf(random, nil, &had),
		Base:    oneOf(random, nil, &Base{}, &Base{Version: "80"}, &Base{Version: "100"}, &Base{Version: "100", Deleted: true}, &Base{Version: "140"}),
		GapFrom: oneOf(random, time.Time{}, written.Add(-2*time.Hour), written.Add(2*time.Hour)),
		Owed:    random.IntN(5) == 0,
	}
	return s
}

func randomPolicy(random *rand.Rand) Policy {
	return Policy{Create: oneOf(random, Creations()...), Delete: random.IntN(2) == 0}
}

// randomChange returns one of the events that a watcher publishes.
func randomChange(random *rand.Rand) events.Change {
	change := changeOf(oneOf(random, nil, isFirstSeen, lacksPassword, isUnknown, isRecreated,
		func(c *events.Change) {
			c.Verb, c.Time, c.WrittenAt = events.VerbDeleted, written.Add(time.Duration(random.IntN(3)-1)*2*time.Hour), time.Time{}
		},
		func(c *events.Change) {
			c.Created, c.CreatedAt, c.Previous, c.Keys["password"] = true, "100", "", events.Key{Fingerprint: fp("2")}
		},
		func(c *events.Change) { isRecreated(c); c.CreatedAt = "140" },
		func(c *events.Change) {
			c.Created, c.UID, c.ResourceVersion, c.ChangedAt, c.CreatedAt = true, "another", "140", "140", "140"
			c.Keys["password"] = events.Key{Fingerprint: fp("2"), ChangedAt: "140"}
		},
		func(c *events.Change) { // Another key has changed since.
			c.ResourceVersion, c.ChangedAt, c.Changed = "110", "110", []string{"user"}
			c.Keys["user"] = events.Key{Fingerprint: fp("4"), ChangedAt: "110"}
		},
		func(c *events.Change) { // What has changed does not count, or does again.
			c.Keys["password"] = oneOf(random,
				events.Key{Fingerprint: fp("2"), ChangedAt: "100", Ignored: events.IgnoredByAnnotation},
				events.Key{Fingerprint: fp("2"), ChangedAt: "100", Since: "100"})
		},
		func(c *events.Change) { // The fingerprints are made with another key.
			c.Fingerprint = "kffffffff:b"
			c.Keys["password"], c.Keys["user"] = events.Key{Fingerprint: "kffffffff:2", ChangedAt: "100"}, events.Key{Fingerprint: "kffffffff:3"}
		},
	))
	change.Ignore = random.IntN(8) == 0
	if random.IntN(8) == 0 {
		change.Hold = "moving"
	}
	return change
}

// randomState gives a workload a record, perhaps of what the source had before, and a history.
func randomState(random *rand.Rand, w *workload.Workload, had events.Change) {
	keys, version, uid := w.Refs[0].Keys, oneOf(random, "0", "80", "90", "100", "110", "140"), oneOf(random, "uid", "uid", "another")
	of := func(change events.Change) workload.RolledFor {
		seen := viewOf(change, workload.Want{Keys: keys})
		return workload.RolledFor{Fingerprint: seen.fingerprint, Version: version, UID: uid, Scope: seen.scope}
	}
	switch entry := of(changeOf(nil)); random.IntN(9) {
	case 0, 1:
		entryOf(entry)(w)
	case 2, 3:
		entryOf(of(had))(w)
	case 4:
		entryOf(workload.Owed(entry))(w)
	case 5:
		entryOf(workload.Owed(workload.DeletedAfter(entry)))(w)
	case 6:
		entryOf(workload.DeletedAfter(entry))(w)
	case 7:
		entryOf(workload.RolledFor{Fingerprint: "k0a1b2c3d:none", Version: workload.NoVersion, UID: "none"})(w)
	}
	w.Version, w.ServingSince = oneOf(random, "50", "150", "500"), oneOf(random, "", "60", "120")
	w.TemplateVersion = oneOf(random, "", "", "70", "95", "120", "150")
	w.Created, w.Patched = written.Add(oneOf(random, -time.Hour, -time.Hour, time.Hour)), oneOf(random, time.Time{}, written)
	w.Edited = oneOf(random, time.Time{}, written.Add(-time.Hour), written.Add(time.Hour))
	w.Progress = workload.Progress{State: oneOf(random, workload.Complete, workload.Complete, workload.Progressing), Pods: oneOf[int32](random, 0, 3, 3)}
	w.Suspended = random.IntN(10) == 0
	if random.IntN(6) == 0 {
		optsIn(oneOf(random, "85", "95", "105", "145"), oneOf(random, -time.Hour, time.Hour))(w)
	}
}

// by returns the situation after a patch that writes entries.
func (s situation) by(entries map[string]workload.RolledFor) situation {
	w := *s.w
	w.Rolled = maps.Clone(w.Rolled)
	if w.Rolled == nil {
		w.Rolled = make(map[string]workload.RolledFor)
	}
	maps.Copy(w.Rolled, entries)
	s.w = &w
	return s
}

// byAnother returns the situation for a leader that begins now. Nothing has happened while nobody led.
func (s situation) byAnother() situation {
	w := *s.w
	w.TemplateVersion, w.ServingSince = "", ""
	w.LinkAfter(nil, "")
	s.w, s.memory = &w, Memory{
		Now: written, Base: &Base{Version: s.now.ResourceVersion, Deleted: s.now.Verb == events.VerbDeleted}, GapFrom: written.Add(24 * time.Hour),
	}
	return s
}

func (s situation) decide() Decision { return Decide(s.w, s.now, s.memory, s.policy) }

// owes reports whether a workload is to be rolled, now or once whatever holds it ends.
func owes(decision Decision) bool {
	return decision.Reason.Action() == Roll || decision.Reason == SourceOnHold
}

// What a leader remembers is no reason to roll a workload that has a record.
func TestARecordedWorkloadIsRolledAtLeastByALeaderThatRemembersNothing(t *testing.T) {
	web := workloadOf(t, "auto", optionalDB, nil)
	for seed := range uint64(situations) {
		s := randomly(web, seed)
		decision := s.decide()
		s.memory = Memory{}
		if blank := s.decide(); len(s.w.Rolled) > 0 && owes(decision) && !owes(blank) {
			t.Fatalf("%d: %s, and without a memory %s", seed, decision.Reason, blank.Reason)
		}
	}
}

// A workload that has got what was decided is at rest.
func TestAWorkloadThatGotWhatWasDecidedIsLeftAlone(t *testing.T) {
	web := workloadOf(t, "auto", optionalDB, nil)
	for seed := range uint64(situations) {
		s := randomly(web, seed)
		decision := s.decide()
		if decision.Reason.Action() != Roll && !decision.Records {
			continue
		}
		after := s.by(map[string]workload.RolledFor{s.now.Source.String(): decision.Record})
		blank := after
		blank.memory = Memory{}
		for whose, next := range map[string]situation{"by one that remembers nothing": blank, "by another leader": after.byAnother()} {
			if again := next.decide(); owes(again) || again.Records {
				t.Fatalf("%d: after %s (%s) it is decided %s: %s (records: %t)", seed, decision.Reason, decision.Record, whose, again.Reason, again.Records)
			}
		}
	}
}

// Nothing rolls because an option was changed while everything was at rest.
func TestAnotherPolicyRollsNothingThatIsAtRest(t *testing.T) {
	web := workloadOf(t, "auto", optionalDB, nil)
	for seed := range uint64(situations) {
		s := randomly(web, seed)
		decision := s.decide()
		if decision.Reason.Action() == Hold || owes(decision) || s.w.Rolled[s.now.Source.String()].IsOwed() {
			continue
		}
		if decision.Records {
			s = s.by(map[string]workload.RolledFor{s.now.Source.String(): decision.Record})
		}
		s = s.byAnother()
		s.policy = randomPolicy(rand.New(rand.NewPCG(seed, 2)))
		if again := s.decide(); owes(again) {
			t.Fatalf("%d: %s, and with %+v %s", seed, decision.Reason, s.policy, again.Reason)
		}
	}
}

// A workload that has to wait is rolled by the next leader.
func TestAnotherLeaderRollsWhatAWorkloadWaitsFor(t *testing.T) {
	web := workloadOf(t, "auto", optionalDB, nil)
	for seed := range uint64(situations) {
		s := randomly(web, seed)
		_, linked := s.w.Link(s.now.Source)
		decision := s.decide()
		if !owes(decision) || linked && !decision.Unnoted {
			continue // A record that the leader knows to be from an earlier opt-in looks to another one like any other.
		}
		note, _ := Note(s.w, []Decision{decision}, true)
		if again := s.by(note.Rolled).byAnother().decide(); !owes(again) {
			t.Fatalf("%d: %s, noted as %v, is %s by another leader", seed, decision.Reason, note.Rolled, again.Reason)
		}
	}
}
