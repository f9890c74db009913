package externalsecret

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheStatusIsReadWhereTheRestOfTheObjectCannotBe(t *testing.T) {
	obj := object(t, `
metadata: {name: db, namespace: shop}
spec: {target: {name: db-secret, newer: true}, data: newer, refreshInterval: {}}
status: {syncedResourceVersion: 1-abc, newer: [1], conditions: [{type: Ready, status: "False", reason: Denied, message: m}]}
`)
	got, err := ReadStatus(obj)
	if err != nil {
		t.Fatal(err)
	}
	want := Status{SyncedVersion: "1-abc", Failed: true, Reason: "Denied"}
	want.Target.Kind, want.Target.Namespace, want.Target.Name = "secret", "shop", "db-secret"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if es := Read(obj); len(es.Problems) != 1 {
		t.Errorf("the whole object has the problems %v, want one", es.Problems)
	}
}

func TestBothReadersAgreeOnTheStatus(t *testing.T) {
	for _, text := range []string{
		"spec: {target: {creationPolicy: None}}\nstatus: {binding: {name: db}}",
		"spec: {target: {name: a}}\nstatus: {binding: {name: b}, conditions: [{type: Ready, status: 'True', reason: SecretSynced}]}",
		"spec: {target: {manifest: {apiVersion: v1, kind: ConfigMap}}}\nstatus: {refreshTime: '2026-03-14T15:09:26Z'}",
	} {
		obj := object(t, text)
		status, err := ReadStatus(obj)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Read(obj).Status, status); diff != "" {
			t.Errorf("%s: (-whole object +status alone):\n%s", text, diff)
		}
	}
}

func TestAnExternalSecretIsUntriedUntilTheOperatorSaysHowItWent(t *testing.T) {
	tests := []struct {
		name, status string
		want         bool
	}{
		{name: "without a status", status: "{}", want: true},
		{name: "while it is not known whether it is ready", status: "{conditions: [{type: Ready, status: Unknown}]}", want: true},
		{name: "it is ready", status: "{syncedResourceVersion: 1-abc, conditions: [{type: Ready, status: 'True'}]}"},
		{name: "it has failed", status: "{conditions: [{type: Ready, status: 'False'}]}"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Read(object(t, "spec: {}\nstatus: "+test.status)); got.Untried() != test.want {
				t.Errorf("untried: got %t, want %t", got.Untried(), test.want)
			}
		})
	}
}
