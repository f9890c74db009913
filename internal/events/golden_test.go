package events

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestEveryKindHasAFixture(t *testing.T) {
	tested := map[Kind]map[Verb]bool{KindRollout: {}, KindCluster: {VerbClaimed: true, VerbWatched: true}}
	for _, c := range allChanges() {
		if tested[c.Source.Kind] == nil {
			tested[c.Source.Kind] = map[Verb]bool{}
		}
		tested[c.Source.Kind][c.Verb] = true
	}
	for _, o := range allOutcomes() {
		tested[KindRollout][o.Verb] = true
	}
	tested[KindProjection] = map[Verb]bool{}
	for _, p := range allProjections() {
		tested[KindProjection][p.Verb] = true
	}
	for kind, list := range verbs {
		for _, verb := range list {
			if !tested[kind][verb] {
				t.Errorf("no test has an event %s", eventType(kind, verb))
			}
		}
	}
}

func TestGoldenWireFormat(t *testing.T) {
	for _, c := range allChanges() {
		compareWire(t, c)
	}
	for _, o := range allOutcomes() {
		compareWire(t, o)
	}
	for _, p := range allProjections() {
		compareWire(t, p)
	}
	lagging := changeOf(KindOpenBao, VerbRotated)
	lagging.Store.LagSeconds = 10
	compareWireAs(t, "openbao.rotated.lagging", lagging)
	held := changeOf(KindSecret, VerbObserved)
	held.Hold = "the migration runs"
	for name, c := range map[string]Change{
		"changed.truncated": countedChange(), "ignoring": leavingOut(), "onhold": held, "writers": written(),
	} {
		compareWireAs(t, "secret."+name, c)
	}
	compareWireAs(t, "rollout.completed.configured", configuredOutcome())
	compareWire(t, claim())
	compareWire(t, watched())
}

func compareWire(t *testing.T, p encoder) {
	t.Helper()
	header, _ := message(t, p)
	compareWireAs(t, strings.TrimSuffix(strings.TrimPrefix(header["ce-type"][0], typePrefix), ".v1"), p)
}

func compareWireAs(t *testing.T, name string, p encoder) {
	t.Helper()
	testkit.Golden(t, "testdata/"+name+".golden", wire(t, p))
}

// wire returns a payload as it is on the wire.
func wire(t *testing.T, p encoder) []byte {
	t.Helper()
	header, data := message(t, p)
	var text bytes.Buffer
	fmt.Fprintln(&text, encoded(t, p).Subject)
	for _, key := range slices.Sorted(maps.Keys(header)) {
		fmt.Fprintf(&text, "%s: %s\n", key, header[key][0])
	}
	fmt.Fprintf(&text, "\n%s\n", data)
	return text.Bytes()
}
