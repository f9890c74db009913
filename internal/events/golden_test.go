package events

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"

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
		compareWire(t, mustEvent(t, c.Event), Subject(c.Cluster, c.Source))
	}
	for _, o := range allOutcomes() {
		compareWire(t, mustEvent(t, o.Event), OutcomeSubject(o.Cluster, o.Workload))
	}
	for _, p := range allProjections() {
		compareWire(t, mustEvent(t, p.Event), ProjectionSubject(p.Cluster, p.Target))
	}
	lagging := changeOf(KindOpenBao, VerbRotated)
	lagging.Store.LagSeconds = 10
	compareWireAs(t, "openbao.rotated.lagging", mustEvent(t, lagging.Event), Subject(lagging.Cluster, lagging.Source))
	held := changeOf(KindSecret, VerbObserved)
	held.Hold = "the migration runs"
	for name, c := range map[string]Change{
		"changed.truncated": countedChange(), "ignoring": leavingOut(), "onhold": held, "writers": written(),
	} {
		compareWireAs(t, "secret."+name, mustEvent(t, c.Event), c.Subject())
	}
	of := configuredOutcome()
	compareWireAs(t, "rollout.completed.configured", mustEvent(t, of.Event), OutcomeSubject(of.Cluster, of.Workload))
	compareWire(t, mustEvent(t, claim().Event), ClaimSubject(testCluster))
	compareWire(t, mustEvent(t, watched().Event), watched().Subject())
}

func compareWire(t *testing.T, e event.Event, subject string) {
	t.Helper()
	compareWireAs(t, strings.TrimSuffix(strings.TrimPrefix(e.Type(), typePrefix), ".v1"), e, subject)
}

func compareWireAs(t *testing.T, name string, e event.Event, subject string) {
	t.Helper()
	testkit.Golden(t, "testdata/"+name+".golden", wire(t, e, subject))
}

// wire returns an event as it is on the wire.
func wire(t *testing.T, e event.Event, subject string) []byte {
	t.Helper()
	header, err := HeaderOf(e)
	testkit.Must(t, err)
	var text bytes.Buffer
	fmt.Fprintln(&text, subject)
	for _, key := range slices.Sorted(maps.Keys(header)) {
		fmt.Fprintf(&text, "%s: %s\n", key, header[key][0])
	}
	fmt.Fprintf(&text, "\n%s\n", e.Data())
	return text.Bytes()
}
