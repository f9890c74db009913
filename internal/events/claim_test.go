package events

import (
	"testing"

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
		stored := throughTheWire(t, want)
		got, err := stored.Claim()
		testkit.Must(t, err)
		testkit.WantEqual(t, "difference", want, got)
		_, err = stored.Change()
		wantReason(t, err, ReasonUnknownType)
	}
	_, err := encoded(t, change()).Claim()
	wantReason(t, err, ReasonUnknownType)
}

func TestWatchedSurvivesTheWire(t *testing.T) {
	everything := Watched{Cluster: testCluster, Time: testTime, Scope: Scope{Kinds: []Kind{KindSecret}, NamespaceSelector: "a in (b, c)"}}
	ignoring := Watched{Cluster: testCluster, Time: testTime, Scope: Scope{Kinds: []Kind{KindSecret}, IgnoredNamespaces: []string{"dev", "kube-system"}}}
	for _, want := range []Watched{watched(), everything, ignoring} {
		stored := throughTheWire(t, want)
		got, err := stored.Watched()
		testkit.Must(t, err)
		testkit.WantEqual(t, "difference", want, got)
		_, err = stored.Change()
		wantReason(t, err, ReasonUnknownType)
		_, err = stored.Claim()
		wantReason(t, err, ReasonUnknownType)
	}
	_, err := encoded(t, claim()).Watched()
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

// altered returns what is stored of a cluster with another id, uid and data than a payload.
func altered(t *testing.T, p encoder, at Address, uid, id string, data []byte) Stored {
	t.Helper()
	header, _ := message(t, p)
	for name, text := range map[string]string{
		"id": id, "source": sourceURI(at.Cluster, watcher), "clustername": at.Cluster, "partitionkey": at.Cluster + "/" + uid,
	} {
		header["ce-"+name] = []string{percentEncode(text)}
	}
	return NewStored(at.Subject(), 1, testTime, header, data)
}

func FuzzClaim(f *testing.F) {
	seed := claim()
	f.Add(seed.Cluster, seed.UID, seed.id(), []byte(`{"replaces":"`+otherUID+`"}`))
	f.Add(seed.Cluster, seed.UID, seed.UID+"/claimed", []byte(`{}`))
	f.Fuzz(func(t *testing.T, cluster, uid, id string, data []byte) {
		at := Address{Cluster: cluster, Kind: KindCluster, Name: ClaimName}
		read, err := altered(t, seed, at, uid, id, data).Claim()
		if err != nil {
			return
		}
		again, err := encoded(t, read).Claim()
		testkit.Must(t, err)
		testkit.WantEqual(t, "difference", read, again)
	})
}

func FuzzWatched(f *testing.F) {
	seed := watched()
	f.Add(seed.Cluster, seed.name(), seed.envelope().id, []byte(`{"kinds":["configmap","secret"],"namespaces":["shop","bank"],"selector":"tier=web"}`))
	f.Add(seed.Cluster, seed.name(), "", []byte(`{"kinds":[]}`))
	f.Fuzz(func(t *testing.T, cluster, uid, id string, data []byte) {
		at := Address{Cluster: cluster, Kind: KindCluster, Name: uid}
		read, err := altered(t, seed, at, uid, id, data).Watched()
		if err != nil {
			return
		}
		again, err := encoded(t, read).Watched()
		testkit.Must(t, err)
		testkit.WantEqual(t, "difference", read, again)
	})
}
