package tests

import (
	"context"
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestEqualValuesHaveDifferentFingerprints(t *testing.T) {
	t.Parallel()
	r := newRig(t, programs.Options{ActuatorArgs: []string{"--settle", "50ms"}})
	other := plane.Namespace(t)
	data := map[string]string{"one": "4711", "two": "4711"}
	r.secret("a", data)
	r.secret("b", data)
	r.configMap("a", data)
	testkit.Must(t, programs.SetSecret(t.Context(), r.client, other, "a", data))
	r.startActuator()
	r.startWatcher("--namespaces", r.namespace+","+other)
	b := r.connect()
	owners := map[string]string{}
	mine := func(fingerprint, owner string) {
		t.Helper()
		if fingerprint == "" {
			t.Errorf("%s has no fingerprint", owner)
		}
		if earlier, ok := owners[fingerprint]; ok {
			t.Errorf("%s has the fingerprint of %s", owner, earlier)
		}
		owners[fingerprint] = owner
	}
	for _, source := range []events.Source{
		{Kind: events.KindSecret, Namespace: r.namespace, Name: "a"},
		{Kind: events.KindSecret, Namespace: r.namespace, Name: "b"},
		{Kind: events.KindConfigMap, Namespace: r.namespace, Name: "a"},
		{Kind: events.KindSecret, Namespace: other, Name: "a"},
	} {
		var change events.Change
		r.eventually("the stream knows "+source.String(), func(ctx context.Context) bool {
			stored, err := b.Last(ctx, events.Subject("demo", source))
			if err != nil {
				return false
			}
			change, err = stored.Change()
			return err == nil
		})
		owner := source.Namespace + "/" + source.String()
		mine(change.Fingerprint, owner)
		for _, name := range []string{"one", "two"} {
			mine(change.Keys[name].Fingerprint, owner+"#"+name)
		}
	}
	if len(owners) != 4*3 {
		t.Errorf("got %d fingerprints, want %d", len(owners), 4*3)
	}
}
