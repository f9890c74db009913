package events

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

// openChecked declares a stream FLEET that collects an intake of each cluster, as deploy/nats/render.sh does. The intakes take whatever is on
// CHANGES: the cluster's server ignores the filter.
func openChecked(t *testing.T, s *testServer, clusters ...string) *Reader {
	t.Helper()
	js := s.jetstream()
	config := jetstream.StreamConfig{Name: "FLEET", AllowDirect: true, AllowMsgTTL: true}
	for _, cluster := range clusters {
		createStream(t, js, jetstream.StreamConfig{
			Name: "FLEET-" + cluster, AllowMsgTTL: true, Sources: []*jetstream.StreamSource{{Name: StreamChanges}},
		})
		config.Sources = append(config.Sources, &jetstream.StreamSource{Name: "FLEET-" + cluster, FilterSubject: changesRoot + cluster + ".>"})
	}
	createStream(t, js, config)
	r, err := OpenFleet(t.Context(), s.connect(), "FLEET")
	must(t, err)
	return r
}

func TestAFleetNamesTheClusterThatDeliversEventsOfAnother(t *testing.T) {
	s := sharedServer(t)
	r := openChecked(t, s, testCluster)
	mustPublish(t, s.bus(), version("db", "1"), 0)
	for _, cluster := range []string{"prod-us", "prod-ap"} {
		change := version("db", "1")
		change.Cluster = cluster
		mustPublish(t, busOf(t, cluster, s.url()), change, 0)
	}
	mustPublish(t, s.bus(), version("last", "1"), 0)
	var got []string
	testkit.Await(t, "the fleet has the last event", func(ctx context.Context) bool {
		got = nil
		err := r.History(ctx, HistoryQuery{}, func(stored Stored) error {
			got = append(got, stored.Subject)
			return nil
		})
		return err == nil && len(got) > 0 && got[len(got)-1] == "keyturn.v1.prod-eu.secret.shop.last"
	})
	wantEqual(t, "subjects in the fleet", []string{"keyturn.v1.prod-eu.secret.shop.db", "keyturn.v1.prod-eu.secret.shop.last"}, got)
	want := []Member{{
		Cluster: testCluster, Last: testTime, Sourced: true, Reached: true, Checked: true, Foreign: 2, ForeignClusters: []string{"prod-ap", "prod-us"},
	}}
	members, err := membersOf(t, r)
	if diff := cmp.Diff(want, members); diff != "" || err != nil {
		t.Errorf("members, %v (-want +got):\n%s", err, diff)
	}
}

func TestImpersonated(t *testing.T) {
	own := change()
	tests := []struct {
		name    string
		subject string
		alter   func(*Stored)
		want    string
	}{
		{name: "an event of its own"},
		{name: "an event of another cluster", subject: "keyturn.v1.prod-ap.secret.shop.db", want: testCluster},
		{name: "the source attribute of another cluster", alter: func(s *Stored) { s.Event.SetSource("k8s://prod-ap/watcher") }, want: "prod-ap"},
		{name: "the cluster attribute of another", alter: func(s *Stored) { s.Event.SetExtension(extCluster, "prod-ap") }, want: "prod-ap"},
		{name: "what cannot be read says nothing", subject: "keyturn.v1.prod-ap.secret.shop.db", alter: func(s *Stored) { s.Err = errStream }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stored := Stored{Subject: Subject(own.Cluster, own.Source), Event: mustEvent(t, own.Event)}
			if tt.subject != "" {
				stored.Subject = tt.subject
			}
			if tt.alter != nil {
				tt.alter(&stored)
			}
			if got := stored.Impersonated(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
