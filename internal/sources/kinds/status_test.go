package kinds

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// statusStep is the status of an object. Its resourceVersion is its index in a list.
type statusStep struct {
	verb                     events.Verb
	revision, reason, secret string
	expiring                 bool
	want                     string
}

var gone = statusStep{verb: events.VerbDeleted}

// play compares the statuses one after the other, each with the last event before it.
func play(t *testing.T, kind events.Kind, list []statusStep) {
	t.Helper()
	source := events.Source{Kind: kind, Namespace: "shop", Name: "db"}
	var before *LastEvent
	for i, s := range list {
		now := &Object{Source: source, UID: types.UID("u"), ResourceVersion: strconv.Itoa(i + 1)}
		state := status{verb: s.verb, fields: events.Status{Secret: s.secret, Revision: s.revision, Reason: s.reason, Expiring: s.expiring}}
		if s.verb == events.VerbDeleted {
			now = nil
		}
		change, worthSaying := compareStatus(before, now, state, keyringOf(1).fingerprint(source, state.content()))
		got := nothing
		if worthSaying {
			got, before = told(change), mustLast(t, change)
		}
		if got != s.want {
			t.Fatalf("state %d: event %s\n want %s", i+1, got, s.want)
		}
	}
}

func (s statusStep) is(want string) statusStep {
	s.want = want
	return s
}

func TestCompareExternalSecrets(t *testing.T) {
	synced := func(revision string) statusStep {
		return statusStep{verb: events.VerbSynced, revision: revision, reason: "SecretSynced", secret: "db"}
	}
	failed := func(reason string) statusStep {
		return statusStep{verb: events.VerbFailed, revision: "1-a", reason: reason, secret: "db"}
	}
	for _, tt := range []struct {
		name string
		list []statusStep
	}{
		{"a sync of another version is published", []statusStep{
			synced("1-a").is("observed u/1 1-a of db: SecretSynced"),
			synced("1-b").is("synced u/2@2 1-b of db: SecretSynced previous"),
			synced("1-b").is(nothing),
			synced("1-a").is("synced u/4@4 1-a of db: SecretSynced previous"),
		}},
		{"a failure is published once, and so is its end", []statusStep{
			synced("1-a").is("observed u/1 1-a of db: SecretSynced"),
			failed("SecretSyncedError").is("failed u/2@2 1-a of db: SecretSyncedError previous"),
			failed("SecretSyncedError").is(nothing),
			failed("SecretSyncedError").is(nothing),
			synced("1-a").is("synced u/5@5 1-a of db: SecretSynced previous"),
			failed("SecretSyncedError").is("failed u/6@6 1-a of db: SecretSyncedError previous"),
		}},
		{"one that is gone was deleted, once", []statusStep{
			gone.is(nothing),
			synced("1-a").is("observed u/2 1-a of db: SecretSynced"),
			gone.is("deleted u/2 {} []"),
			gone.is(nothing),
		}},
		{"one that is created again with the same status is observed", []statusStep{
			synced("1-a").is("observed u/1 1-a of db: SecretSynced"),
			synced("1-b").is("synced u/2@2 1-b of db: SecretSynced previous"),
			gone.is("deleted u/2@2 {} []"),
			synced("1-b").is("observed u/4@2 1-b of db: SecretSynced previous"),
			synced("1-b").is(nothing),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { play(t, events.KindExternalSecret, tt.list) })
	}
}

func TestAnEarlierStatusOfAnObjectIsNothing(t *testing.T) {
	at := func(uid, version string) *Object {
		return &Object{UID: types.UID(uid), ResourceVersion: version}
	}
	ring := keyringOf(1)
	content := func(revision string) (status, []fingerprints) {
		s := status{verb: events.VerbSynced, fields: events.Status{Revision: revision}}
		return s, ring.fingerprint(testSource, s.content())
	}
	current, printed := content("2")
	change, _ := compareStatus(nil, at("u", "10"), current, printed)
	before := mustLast(t, change)
	current, printed = content("1")
	if change, ok := compareStatus(before, at("u", "9"), current, printed); ok {
		t.Errorf("an earlier status of the same object is %s", told(change))
	}
	if _, ok := compareStatus(before, at("v", "9"), current, printed); !ok {
		t.Error("the status of another object is nothing")
	}
}

func TestCompareCertificates(t *testing.T) {
	underWay := statusStep{revision: "1", secret: "web"}
	issued := func(revision string) statusStep {
		return statusStep{verb: events.VerbIssued, revision: revision, reason: "Ready", secret: "web"}
	}
	failed := func(revision string, expiring bool) statusStep {
		return statusStep{verb: events.VerbFailed, revision: revision, reason: "Failed", secret: "web", expiring: expiring}
	}
	for _, tt := range []struct {
		name string
		list []statusStep
	}{
		{"a failure is published once, however often it is retried", []statusStep{
			issued("1").is("observed u/1 1 of web: Ready"),
			failed("1", false).is("failed u/2@2 1 of web: Failed previous"),
			underWay.is(nothing),
			failed("1", false).is(nothing),
			issued("2").is("issued u/5@5 2 of web: Ready previous"),
			failed("2", false).is("failed u/6@6 2 of web: Failed previous"),
		}},
		{"a failure is published again after the renewal time", []statusStep{
			issued("1").is("observed u/1 1 of web: Ready"),
			failed("1", false).is("failed u/2@2 1 of web: Failed previous"),
			failed("1", true).is("failed u/3@3 1 of web: Failed expiring previous"),
			failed("1", true).is(nothing),
		}},
		{"a failure that was cleared is observed", []statusStep{
			issued("1").is("observed u/1 1 of web: Ready"),
			failed("1", false).is("failed u/2@2 1 of web: Failed previous"),
			issued("1").is("observed u/3@2 1 of web: Ready previous"),
			issued("1").is(nothing),
			failed("1", false).is("failed u/5@5 1 of web: Failed previous"),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { play(t, events.KindCertificate, tt.list) })
	}
}
