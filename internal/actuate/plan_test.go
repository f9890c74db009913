package actuate

import (
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

var (
	db      = events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	written = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
)

// fp makes a fingerprint that differs with the letter.
func fp(letter string) string {
	const digits = "0000000000000000000000000000000"
	return "k0a1b2c3d:" + digits + letter
}

// changeOf is a change of the Secret db at resourceVersion 100: its key password, which has changed before, changed, and its
// key user did not.
func changeOf(mutate func(*events.Change)) events.Change {
	change := events.Change{
		Cluster: "demo", Source: db, Verb: events.VerbChanged, UID: "uid", ResourceVersion: "100", ChangedAt: "100",
		Fingerprint: fp("b"), Previous: fp("a"), Changed: []string{"password"}, WrittenAt: written,
		Keys: map[string]events.Key{
			"password": {Fingerprint: fp("2"), ChangedAt: "100"},
			"user":     {Fingerprint: fp("3")},
		},
	}
	if mutate != nil {
		mutate(&change)
	}
	return change
}

// workloadOf is a Deployment that rolls on all that it references, and references db by one key or as a whole.
func workloadOf(t *testing.T, annotation string, ref Reference, mutate func(*workload)) *workload {
	t.Helper()
	optIn, problems := ParseOptIn(map[string]string{annotationRollOn: annotation}, nil, false)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w := &workload{
		id:      events.Workload{Kind: "deployment", Namespace: "shop", Name: "web", UID: "w"},
		version: "50", created: written.Add(-time.Hour), optIn: optIn,
	}
	if ref.Kind != "" {
		w.refs = []Reference{ref}
	}
	if mutate != nil {
		mutate(w)
	}
	return w
}

func TestPlanGivesTheReasonForEveryCase(t *testing.T) {
	whole := Reference{Kind: events.KindSecret, Name: "db"}
	password := Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Required: []string{"password"}}
	user := Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"user"}, Required: []string{"user"}}
	optional := Reference{Kind: events.KindSecret, Name: "db", Optional: true}
	pulled := Reference{Kind: events.KindSecret, Name: "db", ByPull: true}
	rolledFor := func(letter, version, uid string) func(*workload) {
		return func(w *workload) {
			w.rolled = map[string]RolledFor{"secret/db": {Fingerprint: fp(letter), Version: version, UID: uid}}
		}
	}
	created := func(c *events.Change) {
		c.Created, c.CreatedAt, c.Previous = true, "100", ""
		c.Keys["password"] = events.Key{Fingerprint: fp("2")}
	}
	// Another key has changed since the source was created.
	changedSince := func(c *events.Change) {
		c.CreatedAt, c.Changed = "95", []string{"user"}
		c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2")}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
	}
	before := changeOf(func(c *events.Change) {
		c.ResourceVersion, c.ChangedAt, c.Fingerprint = "90", "", fp("b")
	})

	tests := []struct {
		name   string
		rollOn string
		ref    Reference
		state  func(*workload)
		change func(*events.Change)
		from   *events.Change
		want   Reason
	}{
		{name: "content that is read has changed", rollOn: "auto", ref: whole, want: ReasonChanged},
		{name: "a key that is read has changed", rollOn: "auto", ref: password, want: ReasonChanged},
		{name: "a key that is not read has changed", rollOn: "auto", ref: user, want: ReasonKeysNotConsumed},
		{name: "only other keys are asked for", rollOn: "secret/db#user", ref: whole, want: ReasonKeysNotConsumed},
		{name: "the key that is asked for is not read", rollOn: "secret/db#password", ref: user, want: ReasonKeysNotConsumed},
		{
			name: "a key that is read changed earlier, in an event that this one superseded", rollOn: "auto", ref: password,
			change: func(c *events.Change) {
				c.Changed = []string{"user"}
				c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2"), ChangedAt: "95"}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
			},
			want: ReasonChanged,
		},
		{
			name: "the same, and the workload was rolled for that event", rollOn: "auto", ref: password, state: rolledFor("9", "95", "uid"),
			change: func(c *events.Change) {
				c.Keys = map[string]events.Key{"password": {Fingerprint: fp("2"), ChangedAt: "95"}, "user": {Fingerprint: fp("4"), ChangedAt: "100"}}
			},
			want: ReasonKeysNotConsumed,
		},
		{name: "nothing asks for the source", rollOn: "configmaps", ref: whole, want: ReasonNotOptedIn},
		{name: "the source is not referenced", rollOn: "auto", want: ReasonNotOptedIn},
		{name: "the source is named and not referenced", rollOn: "secret/db", want: ReasonChanged},
		{name: "the source is excluded", rollOn: "auto, !secret/db", ref: whole, want: ReasonExcluded},
		{name: "the source is only pulled with", rollOn: "auto", ref: pulled, want: ReasonPulledOnly},
		{
			name: "the source says ignore", rollOn: "auto", ref: whole,
			change: func(c *events.Change) { c.Ignore = true }, want: ReasonSourceIgnored,
		},
		{
			name: "the source was deleted", rollOn: "auto", ref: whole,
			change: func(c *events.Change) { c.Verb = events.VerbDeleted }, want: ReasonSourceDeleted,
		},
		{
			name: "the source was never seen to change", rollOn: "auto", ref: whole,
			change: func(c *events.Change) { c.Verb, c.ChangedAt, c.Keys = events.VerbObserved, "", nil }, want: ReasonFirstSeen,
		},
		{
			name: "an event of the verb observed tells of an earlier change", rollOn: "auto", ref: whole,
			change: func(c *events.Change) { c.Verb, c.ChangedAt, c.ResourceVersion = events.VerbObserved, "95", "110" }, want: ReasonChanged,
		},
		{name: "the workload was rolled for this change", rollOn: "auto", ref: whole, state: rolledFor("b", "100", "uid"), want: ReasonAlreadyRolled},
		{name: "the workload was rolled for a later change", rollOn: "auto", ref: whole, state: rolledFor("c", "101", "uid"), want: ReasonStale},
		{name: "the numbers of resourceVersions count, not their digits", rollOn: "auto", ref: whole, state: rolledFor("a", "99", "uid"), want: ReasonChanged},
		{name: "the workload was rolled for this content before", rollOn: "auto", ref: whole, state: rolledFor("b", "80", "uid"), want: ReasonSameContent},
		{
			name: "the record is of another object of this name, as after a restore", rollOn: "auto", ref: whole,
			state: rolledFor("a", "999999", "elsewhere"), want: ReasonChanged,
		},
		{
			name: "the record is of another object of this name with the same content", rollOn: "auto", ref: whole,
			state: rolledFor("b", "999999", "elsewhere"), want: ReasonSameContent,
		},
		{name: "the content is again what it was", rollOn: "auto", ref: whole, from: &before, want: ReasonChangedBack},
		{name: "what was before does not count where there is a record", rollOn: "auto", ref: whole, from: &before, state: rolledFor("a", "80", "uid"), want: ReasonChanged},
		{
			name: "a key that the pods need is gone", rollOn: "auto", ref: password,
			change: func(c *events.Change) { c.Keys["password"] = events.Key{ChangedAt: "100"} }, want: ReasonKeyMissing,
		},
		{
			name: "a key that the pods read if it is there is gone", rollOn: "auto",
			ref:    Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Optional: true},
			change: func(c *events.Change) { c.Keys["password"] = events.Key{ChangedAt: "100"} }, want: ReasonChanged,
		},
		{name: "the template changed later", rollOn: "auto", ref: whole, state: func(w *workload) { w.templateVersion = "101" }, want: ReasonPodsNewer},
		{name: "the template changed earlier", rollOn: "auto", ref: whole, state: func(w *workload) { w.templateVersion = "99" }, want: ReasonChanged},
		{
			name: "the workload was created well after the write", rollOn: "auto", ref: whole,
			state: func(w *workload) { w.created = written.Add(bornAfterMargin + time.Second) }, want: ReasonPodsNewer,
		},
		{
			name: "the workload was created at about the time of the write", rollOn: "auto", ref: whole,
			state: func(w *workload) { w.created = written.Add(bornAfterMargin) }, want: ReasonChanged,
		},
		{name: "the source appeared and the pods waited for it", rollOn: "auto", ref: whole, change: created, want: ReasonPodsWaited},
		{name: "the source appeared and the pods did not wait", rollOn: "auto", ref: optional, change: created, want: ReasonAppeared},
		{name: "the source appeared with the key that the pods need", rollOn: "auto", ref: password, change: created, want: ReasonKeysNotConsumed},
		{
			name: "the source appeared with a key that the pods read if it is there", rollOn: "auto",
			ref:    Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Optional: true},
			change: created, want: ReasonAppeared,
		},
		{name: "a key that is not read has changed since the source appeared", rollOn: "auto", ref: password, change: changedSince, want: ReasonKeysNotConsumed},
		{
			name: "the same, and nobody was told yet that the source appeared", rollOn: "auto",
			ref:    Reference{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}, Optional: true},
			change: changedSince, want: ReasonAppeared,
		},
		{name: "the source appeared and is only named", rollOn: "secret/db", change: created, want: ReasonAppeared},
		{
			name: "the source was created again with other content", rollOn: "auto", ref: whole,
			change: func(c *events.Change) { c.Created = true }, want: ReasonChanged,
		},
		{
			name: "a source with too many keys to list has changed", rollOn: "auto", ref: password,
			change: func(c *events.Change) { c.Keys, c.Truncated, c.Changed = nil, true, nil }, want: ReasonChanged,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workloadOf(t, test.rollOn, test.ref, test.state)
			if got := plan(w, changeOf(test.change), test.from).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestWhatARollRecordsMakesTheSameEventASkip(t *testing.T) {
	for _, ref := range []Reference{
		{Kind: events.KindSecret, Name: "db"},
		{Kind: events.KindSecret, Name: "db", Keys: []string{"password"}},
		{Kind: events.KindSecret, Name: "db", Keys: []string{"password", "user"}},
	} {
		w := workloadOf(t, "auto", ref, nil)
		first := plan(w, changeOf(nil), nil)
		if first.Reason != ReasonChanged {
			t.Fatalf("keys %v: got %s, want %s", ref.Keys, first.Reason, ReasonChanged)
		}
		w.rolled = map[string]RolledFor{"secret/db": first.Record}
		if again := plan(w, changeOf(nil), nil); again.Reason != ReasonAlreadyRolled {
			t.Errorf("keys %v: got %s, want %s", ref.Keys, again.Reason, ReasonAlreadyRolled)
		}
	}
}

func TestEveryReasonIsToldByOneNameAndOneSentence(t *testing.T) {
	names := make(map[string]Reason)
	for reason := ReasonUnknown; reason <= ReasonWorkloadGone; reason++ {
		if reason.String() == "" || reason.Sentence() == "" {
			t.Errorf("reason %d has no name or no sentence", reason)
		}
		if other, taken := names[reason.String()]; taken {
			t.Errorf("reasons %d and %d are both called %s", other, reason, reason)
		}
		names[reason.String()] = reason
	}
	if len(names) != len(verdicts) {
		t.Errorf("verdicts: got %d, want one for each of %d reasons", len(verdicts), len(names))
	}
}
