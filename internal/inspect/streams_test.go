package inspect

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
)

func TestClusterLines(t *testing.T) {
	var out bytes.Buffer
	err := writeMembers(&out, View{}, []events.Member{
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

func TestClustersAreEncoded(t *testing.T) {
	members := []events.Member{{Cluster: "east", UIDs: []string{"uid-one"}}}
	for format, want := range map[Format]string{
		JSON: "[\n  {\n    \"cluster\": \"east\",\n    \"uids\": [\n      \"uid-one\"\n    ],\n    \"sourced\": false,\n",
		YAML: "- checked: false\n  cluster: east\n",
	} {
		var out bytes.Buffer
		if err := writeMembers(&out, View{Format: format}, members); err != nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("as %s (%v):\n%s", format, err, &out)
		}
	}
	var none bytes.Buffer
	if err := writeMembers(&none, View{Format: JSON}, nil); err != nil || none.String() != "[]\n" {
		t.Errorf("none: %q, %v", &none, err)
	}
}

func TestDeadLettersAreListedWithoutTheirEvents(t *testing.T) {
	letter := events.DeadLetter{
		Time: historyNow, Reason: "malformed", Subject: "keyturn.v1.demo.secret.shop.db", Error: "malformed: no", Data: []byte("what was published"),
	}
	for _, tt := range []struct {
		name    string
		letters []events.DeadLetter
		format  Format
		want    string
	}{
		{"none", nil, Table, "There are no dead letters.\n"},
		{"one", []events.DeadLetter{letter}, Table, `TIME                  REASON     SUBJECT                         ERROR
2026-03-14T15:09:26Z  malformed  keyturn.v1.demo.secret.shop.db  malformed: no
`},
		{
			"encoded", []events.DeadLetter{letter}, YAML,
			"- error: 'malformed: no'\n  reason: malformed\n  seq: 0\n  subject: keyturn.v1.demo.secret.shop.db\n  time: \"2026-03-14T15:09:26Z\"\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := writeLetters(&out, View{Format: tt.format}, tt.letters); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}
