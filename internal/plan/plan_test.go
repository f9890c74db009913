package plan

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestPlanGivesTheReasonForEveryCase(t *testing.T) {
	pulled, other := workload.Reference{Kind: events.KindSecret, Name: "db", ByPull: true}, workload.Reference{Kind: events.KindSecret, Name: "other"}
	templateWritten := func(after time.Duration) func(*workload.Workload) {
		return func(w *workload.Workload) { w.TemplateVersion, w.TemplateWritten = "101", written.Add(after) }
	}
	// Another key has changed since the source was created.
	changedSince := func(c *events.Change) {
		c.CreatedAt, c.Changed = "95", []string{"user"}
		c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2")}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
	}
	testReasons(t, []decideTest{
		{
			name: "it is on hold, and the pods are newer", state: func(w *workload.Workload) { w.TemplateVersion = "200" },
			change: func(c *events.Change) { c.Hold = "migration" }, want: PodsNewer,
		},
		{
			name: "it is put on hold after the change, which is another event",
			change: func(c *events.Change) {
				c.Verb, c.ResourceVersion, c.Changed, c.Hold = events.VerbObserved, "120", nil, "migration"
			}, want: SourceOnHold,
		},
		{
			name: "the hold is taken off from what was rolled", state: recordOf("b", "100", "uid"),
			change: func(c *events.Change) { c.Verb, c.ResourceVersion, c.Changed = events.VerbObserved, "130", nil }, want: KeysNotConsumed,
		},
		{
			name: "a key that is read changed earlier, in an event that this one superseded", ref: passwordDB,
			change: func(c *events.Change) {
				c.Changed = []string{"user"}
				c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2"), ChangedAt: "95"}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
			},
			want: Changed,
		},
		{
			name:  "its own rollout was aborted, and the workload was rolled for the change",
			state: states(recordOf("b", "100", "uid"), func(w *workload.Workload) { w.Aborted = true }), want: AlreadyRolled,
		},
		{name: "the source is only pulled with", ref: pulled, want: PulledOnly},
		{
			name:  "the template changed later by its resourceVersion, and earlier by the clock",
			state: templateWritten(-clockMargin - time.Second), want: Changed,
		},
		{
			name:  "the template changed later by its resourceVersion, and at about the same time by the clock",
			state: templateWritten(-clockMargin), want: PodsNewer,
		},
		{
			name:  "the workload was created well after the write",
			state: func(w *workload.Workload) { w.Created = written.Add(clockMargin + time.Second) }, want: PodsNewer,
		},
		{name: "the source appeared, and the pods became available after it", change: isCreated, state: serving("101"), want: PodsWaited},
		{name: "a secret in a store came back after pods had been available: its times are no versions", ref: storeDB, change: func(c *events.Change) {
			isCreated(c)
			c.Source, c.Keys = events.Source{Kind: events.KindOpenBao, Name: "bao/root/secret/db"}, nil
		}, state: serving("99"), want: PodsWaited},
		{
			name: "a key that is not read has changed since the source appeared, of which nobody was told yet", ref: optionalKey, change: changedSince,
			want: Appeared,
		},
		{name: "the source appeared and is only named", rollOn: "secret/db", ref: other, change: isCreated, want: Appeared},
	})
}

// A source that was found a short time after its creation, when the cluster was first watched, may have come after the pods.
func TestASourceThatIsFoundSoonAfterItsCreationRollsWhoStartedWithoutIt(t *testing.T) {
	found := func(c *events.Change) {
		isFirstSeen(c)
		c.CreatedAt, c.Since = "100", written
	}
	// What was found is superseded by an event about another key.
	superseded := func(c *events.Change) {
		c.CreatedAt, c.Since, c.ResourceVersion, c.ChangedAt, c.Changed = "100", written, "120", "120", []string{"user"}
		c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2")}, "user": {Fingerprint: fp("4"), ChangedAt: "120"}}
	}
	made := func(created, edited time.Duration) func(*workload.Workload) {
		return func(w *workload.Workload) { w.Created, w.Edited = written.Add(created), written.Add(edited) }
	}
	testReasons(t, []decideTest{
		{name: "the workload is older", ref: optionalDB, state: made(-time.Second, -time.Second), change: found, want: Appeared},
		{name: "the workload is newer", ref: optionalDB, state: made(time.Second, time.Second), change: found, want: FirstSeen},
		{name: "the workload is older, and was written later", ref: optionalDB, state: made(-time.Hour, time.Second), change: found, want: FirstSeen},
		{name: "the workload is older and needs it", ref: wholeDB, state: made(-time.Minute, -time.Minute), change: found, want: FirstSeen},
		{name: "an event about another key came since", ref: optionalKey, state: made(-time.Minute, -time.Minute), change: superseded, want: Appeared},
		{
			name: "its template is known to be newer", ref: optionalDB, change: found, want: PodsNewer,
			state: func(w *workload.Workload) { w.Created, w.TemplateVersion = written.Add(-time.Hour), "110" },
		},
	})
}

// An event that does not say when the content changed, because the stream knew nothing before it, is compared with what the workload recorded.
func TestARecordTellsWhatChangedBeforeTheSourceWasFirstSeen(t *testing.T) {
	// What was first seen is superseded by an event about a key that is not read.
	superseded := func(c *events.Change) {
		c.Changed = []string{"user"}
		c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2")}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
	}
	rolled := func(ref workload.Reference, password, version, uid string) func(*workload.Workload) {
		before := changeOf(func(c *events.Change) {
			c.Keys["password"] = events.Key{Fingerprint: fp(password), ChangedAt: version}
			c.Fingerprint = fp(map[bool]string{true: "b", false: "a"}[password == "2"])
		})
		record := decisionOf(workloadOf(t, "auto", ref, nil), before, nil).Record
		record.Version, record.UID = version, uid
		return entryOf(record)
	}
	byKey := func(password, version, uid string) func(*workload.Workload) {
		return rolled(passwordDB, password, version, uid)
	}
	underAnotherKey := func(w *workload.Workload) {
		byKey("1", "80", "uid")(w)
		record := w.Rolled["secret/db"]
		record.Fingerprint = "kffffffff" + record.Fingerprint[len("kffffffff"):]
		w.Rolled["secret/db"] = record
	}
	testReasons(t, []decideTest{
		{name: "other content, read by a key", ref: passwordDB, state: byKey("1", "80", "uid"), change: isFirstSeen, want: Changed},
		{name: "the same content, read as a whole", ref: wholeDB, state: rolled(wholeDB, "2", "80", "uid"), change: isFirstSeen, want: FirstSeen},
		{name: "other content of another object of this name", ref: passwordDB, state: byKey("1", "999", "elsewhere"), change: isFirstSeen, want: Changed},
		{name: "a record under another key of the installation", ref: passwordDB, state: underAnotherKey, change: isFirstSeen, want: FirstSeen},
		{name: "other content before a later event about another key", ref: passwordDB, state: byKey("1", "80", "uid"), change: superseded, want: Changed},
		{name: "other content after a long absence, by a key", ref: passwordDB, state: byKey("1", "80", "another"), change: isCreated, want: Changed},
		{name: "the same content after a long absence", ref: passwordDB, state: byKey("2", "80", "another"), change: isCreated, want: KeysNotConsumed},
	})
}
