package inspect

import (
	"bytes"
	"testing"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestClusterLines(t *testing.T) {
	var out bytes.Buffer
	err := writeMembers(&out, Wide, []bus.Member{
		{Cluster: "east", Last: historyNow, UIDs: []string{"uid-one"}, Sourced: true, Lag: 7, Reached: true, Checked: true},
		{Cluster: "mole", Sourced: true, Reached: true, Checked: true, Foreign: 3, ForeignClusters: []string{"east", "north"}},
		{Cluster: "north", UIDs: []string{"uid-two", "uid-three"}},
		{Cluster: "west", Sourced: true},
	})
	testkit.Must(t, err)
	want := `CLUSTER  LAST EVENT            BEHIND       FOREIGN             UID
east     2026-03-14T15:09:26Z  7            0                   uid-one
mole     -                     0            3 (of east, north)  -
north    -                     -            -                   uid-two, uid-three (this name is claimed by more than one cluster)
west     -                     not reached  not checked         -
`
	testkit.WantEqual(t, "lines", want, out.String())
}

func TestDeadLettersAreListed(t *testing.T) {
	const subject = "keyturn.v1.demo.secret.shop.db"
	letters := []events.DeadLetter{
		{Time: historyNow, Reason: "malformed", Subject: subject, Error: "malformed: no"},
	}
	for format, want := range map[Format]string{
		Table: "TIME                  REASON     SUBJECT                         ERROR\n" +
			"2026-03-14T15:09:26Z  malformed  keyturn.v1.demo.secret.shop.db  malformed: no\n",
		YAML: "- error: 'malformed: no'\n  reason: malformed\n  seq: 0\n  subject: " + subject + "\n  time: \"2026-03-14T15:09:26Z\"\n",
	} {
		var out bytes.Buffer
		testkit.Must(t, writeLetters(&out, format, letters))
		testkit.WantEqual(t, "lines", want, out.String())
	}
}
