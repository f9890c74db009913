package events

import (
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/keyturn/keyturn/tests/testkit"
)

const otherUID = "0d3c1b0f-6c1d-4f6e-9a53-5f0c2a4e7a11"

func claim() Claim {
	return Claim{Cluster: testCluster, UID: testUID, Time: testTime, Replaces: otherUID}
}

func watched() Watched {
	return Watched{Cluster: testCluster, Time: testTime, Scope: Scope{
		Kinds: []Kind{KindConfigMap, KindSecret}, Namespaces: []string{"shop", "bank"}, Selector: "tier=web",
	}}
}

func TestClaimSurvivesTheWire(t *testing.T) {
	for _, want := range []Claim{claim(), {Cluster: testCluster, UID: testUID, Time: testTime}} {
		e := throughTheWire(t, mustEvent(t, want.Event), ClaimSubject(testCluster))
		got, err := parseClaim(e)
		testkit.Must(t, err)
		testkit.WantEqual(t, "difference", want, got)
		_, err = ParseChange(e)
		wantReason(t, err, ReasonUnknownType)
	}
	_, err := parseClaim(mustEvent(t, change().Event))
	wantReason(t, err, ReasonUnknownType)
}

func TestWatchedSurvivesTheWire(t *testing.T) {
	everything := Watched{Cluster: testCluster, Time: testTime, Scope: Scope{Kinds: []Kind{KindSecret}, NamespaceSelector: "a in (b, c)"}}
	ignoring := Watched{Cluster: testCluster, Time: testTime, Scope: Scope{Kinds: []Kind{KindSecret}, IgnoredNamespaces: []string{"dev", "kube-system"}}}
	for _, want := range []Watched{watched(), everything, ignoring} {
		e := throughTheWire(t, mustEvent(t, want.Event), want.Subject())
		got, err := parseWatched(e)
		testkit.Must(t, err)
		testkit.WantEqual(t, "difference", want, got)
		_, err = ParseChange(e)
		wantReason(t, err, ReasonUnknownType)
		_, err = parseClaim(e)
		wantReason(t, err, ReasonUnknownType)
	}
	_, err := parseWatched(mustEvent(t, claim().Event))
	wantReason(t, err, ReasonUnknownType)
}

func TestAScopeCoversSources(t *testing.T) {
	secret := Source{Kind: KindSecret, Namespace: "shop", Name: "db"}
	for _, tt := range []struct {
		name  string
		scope Scope
		want  bool
	}{
		{"of its kind in all namespaces", Scope{Kinds: []Kind{KindConfigMap, KindSecret}}, true},
		{"in its namespaces", Scope{Kinds: []Kind{KindSecret}, Namespaces: []string{"bank", "shop"}}, true},
		{"not in others", Scope{Kinds: []Kind{KindSecret}, Namespaces: []string{"bank"}}, false},
		{"not in ignored ones", Scope{Kinds: []Kind{KindSecret}, IgnoredNamespaces: []string{"bank", "shop"}}, false},
		{"not of other kinds", Scope{Kinds: []Kind{KindConfigMap}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) { testkit.WantEqual(t, "covered", tt.want, tt.scope.Covers(secret)) })
	}
}

// altered returns an event of a cluster with another id, uid and data.
func altered(e event.Event, cluster, uid, id string, data []byte) event.Event {
	e.SetID(id)
	e.SetSource(sourceURI(cluster, watcher))
	e.SetExtension(extCluster, cluster)
	e.SetExtension(extPartitionKey, cluster+"/"+uid)
	e.DataEncoded = data
	return e
}

func FuzzParseClaim(f *testing.F) {
	seed := claim()
	f.Add(seed.Cluster, seed.UID, seed.id(), []byte(`{"replaces":"`+otherUID+`"}`))
	f.Add(seed.Cluster, seed.UID, seed.UID+"/claimed", []byte(`{}`))
	f.Fuzz(func(t *testing.T, cluster, uid, id string, data []byte) {
		parsed, err := parseClaim(altered(mustEvent(t, seed.Event), cluster, uid, id, data))
		if err != nil {
			return
		}
		again, err := parseClaim(mustEvent(t, parsed.Event))
		testkit.Must(t, err)
		testkit.WantEqual(t, "difference", parsed, again)
	})
}

func FuzzParseWatched(f *testing.F) {
	seed := watched()
	f.Add(seed.Cluster, seed.name(), seed.envelope().id, []byte(`{"kinds":["configmap","secret"],"namespaces":["shop","bank"],"selector":"tier=web"}`))
	f.Add(seed.Cluster, seed.name(), "", []byte(`{"kinds":[]}`))
	f.Fuzz(func(t *testing.T, cluster, uid, id string, data []byte) {
		parsed, err := parseWatched(altered(mustEvent(t, seed.Event), cluster, uid, id, data))
		if err != nil {
			return
		}
		again, err := parseWatched(mustEvent(t, parsed.Event))
		testkit.Must(t, err)
		testkit.WantEqual(t, "difference", parsed, again)
	})
}
