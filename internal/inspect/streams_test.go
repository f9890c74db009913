package inspect

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
)

func TestClusterLines(t *testing.T) {
	var out bytes.Buffer
	err := writeMembers(&out, View{}, []bus.Member{
		{Cluster: "east", Last: historyNow, UIDs: []string{"uid-one"}, Sourced: true, Lag: 7, Reached: true, Checked: true},
		{Cluster: "mole", Sourced: true, Reached: true, Checked: true, Foreign: 3, ForeignClusters: []string{"east", "north"}},
		{Cluster: "north", UIDs: []string{"uid-two", "uid-three"}},
		{Cluster: "west", Sourced: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `CLUSTER  LAST EVENT            BEHIND       FOREIGN             UID
east     2026-03-14T15:09:26Z  7            0                   uid-one
mole     -                     0            3 (of east, north)  -
north    -                     -            -                   uid-two, uid-three (this name is claimed by more than one cluster)
west     -                     not reached  not checked         -
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestDeadLettersAreListedWithoutTheirEvents(t *testing.T) {
	const subject = "keyturn.v1.demo.secret.shop.db"
	letters := []events.DeadLetter{
		{Time: historyNow, Reason: "malformed", Subject: subject, Error: "malformed: no", Data: []byte("what was published")},
	}
	for format, want := range map[Format]string{
		Table: "TIME                  REASON     SUBJECT                         ERROR\n" +
			"2026-03-14T15:09:26Z  malformed  keyturn.v1.demo.secret.shop.db  malformed: no\n",
		YAML: "- error: 'malformed: no'\n  reason: malformed\n  seq: 0\n  subject: " + subject + "\n  time: \"2026-03-14T15:09:26Z\"\n",
	} {
		var out bytes.Buffer
		if err := writeLetters(&out, View{Format: format}, letters); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	}
}
