package events

import (
	"testing"
	"time"
)

func watched() Watched {
	return Watched{Cluster: testCluster, Time: testTime, Scope: Scope{
		Kinds: []Kind{KindConfigMap, KindSecret}, Namespaces: []string{"shop", "bank"}, Selector: "tier=web",
	}}
}

func TestWatchedSurvivesTheWire(t *testing.T) {
	everything := Watched{Cluster: testCluster, Time: testTime, Scope: Scope{Kinds: []Kind{KindSecret}, NamespaceSelector: "a in (b, c)"}}
	ignoring := Watched{Cluster: testCluster, Time: testTime, Scope: Scope{Kinds: []Kind{KindSecret}, IgnoredNamespaces: []string{"dev", "kube-system"}}}
	for _, want := range []Watched{watched(), everything, ignoring} {
		e := throughTheWire(t, mustEvent(t, want.event), want.subject())
		got, err := parseWatched(e)
		must(t, err)
		wantEqual(t, "difference", want, got)
		if _, err := ParseChange(e); !isReject(err, ReasonUnknownType) {
			t.Errorf("read as a change: got %v, want it refused", err)
		}
		if _, err := parseClaim(e); !isReject(err, ReasonUnknownType) {
			t.Errorf("read as a claim: got %v, want it refused", err)
		}
	}
	if _, err := parseWatched(mustEvent(t, claim().event)); !isReject(err, ReasonUnknownType) {
		t.Errorf("a claim read as what is watched: got %v, want it refused", err)
	}
}

func TestTheLastTimeOfEachScopeIsKept(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	wide, narrow := Scope{Kinds: []Kind{KindSecret}}, Scope{Kinds: []Kind{KindSecret}, Namespaces: []string{"shop"}}
	for _, one := range []struct {
		scope Scope
		at    time.Time
	}{{wide, testTime}, {narrow, testTime}, {wide, testTime.Add(time.Hour)}} {
		published(t, func() error { return b.PublishWatched(t.Context(), one.scope, one.at) })
	}
	mustClaim(t, b, testUID, "")
	if _, err := s.jetstream().Publish(t.Context(), changesRoot+testCluster+".cluster._."+watchedPrefix+"0", []byte("rubbish")); err != nil {
		t.Fatal(err)
	}
	got, err := answer(t, func() ([]Watched, error) { return b.Watched(t.Context()) })
	must(t, err)
	want := []Watched{
		{Cluster: testCluster, Time: testTime, Scope: narrow},
		{Cluster: testCluster, Time: testTime.Add(time.Hour), Scope: wide},
	}
	wantEqual(t, "difference", want, got)
	if history := messages(t, s.jetstream(), StreamHistory); len(history) != 1 {
		t.Errorf("HISTORY has %d messages, want the claim alone", len(history))
	}
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
		{"in all that are not ignored", Scope{Kinds: []Kind{KindSecret}, IgnoredNamespaces: []string{"bank"}}, true},
		{"not of other kinds", Scope{Kinds: []Kind{KindConfigMap}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.scope.Covers(secret); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

func FuzzParseWatched(f *testing.F) {
	seed := watched()
	f.Add(seed.Cluster, seed.name(), seed.envelope().id, []byte(`{"kinds":["configmap","secret"],"namespaces":["shop","bank"],"selector":"tier=web"}`))
	f.Add(seed.Cluster, seed.name(), "", []byte(`{"kinds":[]}`))
	f.Fuzz(func(t *testing.T, cluster, uid, id string, data []byte) {
		e := mustEvent(t, seed.event)
		e.SetID(id)
		e.SetSource(sourceURI(cluster, watcher))
		e.SetExtension(extCluster, cluster)
		e.SetExtension(extPartitionKey, cluster+"/"+uid)
		e.DataEncoded = data
		parsed, err := parseWatched(e)
		if err != nil {
			return
		}
		again, err := parseWatched(mustEvent(t, parsed.event))
		if err != nil {
			t.Fatalf("what was read cannot be written and read again: %v", err)
		}
		wantEqual(t, "difference", parsed, again)
	})
}
