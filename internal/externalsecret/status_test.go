package externalsecret

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTheStatusIsReadWhereTheRestOfTheObjectCannotBe(t *testing.T) {
	obj := object(t, `
metadata: {name: db, namespace: shop}
spec: {target: {name: db-secret, newer: true}, data: newer, refreshInterval: {}}
status: {syncedResourceVersion: 1-abc, newer: [1], conditions: [{type: Ready, status: "False", reason: Denied, message: m}]}
`)
	got, err := ReadStatus(obj)
	testkit.Must(t, err)
	want := Status{SyncedVersion: "1-abc", Failed: true, Reason: "Denied"}
	want.Target.Kind, want.Target.Namespace, want.Target.Name = "secret", "shop", "db-secret"
	testkit.WantEqual(t, "status", want, got)
	if es := Read(obj); len(es.Problems) != 1 {
		t.Errorf("the whole object has the problems %v, want one", es.Problems)
	}
}

func TestAnExternalSecretIsUntriedUntilTheOperatorSaysHowItWent(t *testing.T) {
	for _, test := range []struct {
		name, status string
		want         bool
	}{
		{name: "without a status", status: "{}", want: true},
		{name: "while it is not known whether it is ready", status: "{conditions: [{type: Ready, status: Unknown}]}", want: true},
		{name: "it is ready", status: "{syncedResourceVersion: 1-abc, conditions: [{type: Ready, status: 'True'}]}"},
		{name: "it has failed", status: "{conditions: [{type: Ready, status: 'False'}]}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Read(object(t, "spec: {}\nstatus: "+test.status)); got.Untried() != test.want {
				t.Errorf("untried: got %t, want %t", got.Untried(), test.want)
			}
		})
	}
}

func TestWhatTheOperatorGivesUpIsAnObstacle(t *testing.T) {
	for _, test := range []struct {
		name, status, message string
		want                  Obstacle
	}{
		{name: "an immutable Secret", status: "False", message: "could not update secret, target is immutable", want: Immutable},
		{name: "the Secret of another", status: "False", message: "target is owned by another ExternalSecret", want: Owned},
		{name: "that of another controller", status: "False", message: "failed to take ownership of target secret", want: Owned},
		{name: "not what it tries again", status: "False", message: "could not get secret data from provider"},
		{name: "not what is over", status: "True", message: "could not update secret, target is immutable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			es := Read(object(t, "spec: {}\nstatus: {conditions: [{type: Ready, status: '"+test.status+"', message: '"+test.message+"'}]}"))
			if got := es.Obstacle(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestASyncThatWroteNothingIsKnownByItsReason(t *testing.T) {
	for reason, want := range map[string]struct{ lacks, deleted bool }{
		"SecretSynced": {}, "SecretMissing": {lacks: true}, "ResourceMissing": {lacks: true}, "SecretDeleted": {deleted: true}, "ResourceDeleted": {deleted: true},
	} {
		s := Read(object(t, "spec: {}\nstatus: {conditions: [{type: Ready, status: 'True', reason: "+reason+"}]}")).Status
		if s.LacksTarget() != want.lacks || s.DeletedTarget() != want.deleted {
			t.Errorf("%s: no Secret: got %t, want %t; deleted: got %t, want %t", reason, s.LacksTarget(), want.lacks, s.DeletedTarget(), want.deleted)
		}
	}
}
