package bus

import (
	"context"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func readHistory(t *testing.T, from anyReader, query HistoryQuery) []string {
	t.Helper()
	var got []string
	testkit.Await(t, "the history is read", func(ctx context.Context) bool {
		got = nil
		err := from.History(ctx, query, func(s events.Stored) error {
			got = append(got, s.Subject+" "+s.ID())
			return s.Err
		})
		if err != nil && !IsSilence(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	return got
}

func TestHistoryHasWhatIsSupersededOnChanges(t *testing.T) {
	b := sharedServer(t).bus()
	first := version("db", "1")
	seq := mustPublish(t, b, first, 0)
	second := version("db", "2")
	mustPublish(t, b, second, seq)
	mail := version("mail", "3")
	mustPublish(t, b, mail, 0)
	rolled := outcome()
	mustTell(t, b, rolled)
	line := func(c events.Change) string { return events.Subject(testCluster, c.Source) + " " + c.ID() }
	last := events.OutcomeSubject(testCluster, rolled.Workload) + " " + rolled.ID()
	for _, tt := range []struct {
		name  string
		query HistoryQuery
		want  []string
	}{
		{"a query that says nothing leaves nothing out", HistoryQuery{}, []string{line(first), line(second), line(mail), last}},
		{"one source", HistoryQuery{Clusters: []string{testCluster}, Kind: events.KindSecret, Namespace: "shop", Name: "db"}, []string{line(first), line(second)}},
		{"one workload", HistoryQuery{Kind: events.KindRollout, Name: "deployment-web-front"}, []string{last}},
		{"several clusters", HistoryQuery{Clusters: []string{"other", testCluster}, Name: "mail"}, []string{line(mail)}},
		{"a time to come", HistoryQuery{Since: time.Now().Add(time.Hour)}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { testkit.WantEqual(t, "events", tt.want, readHistory(t, b, tt.query)) })
	}
}

func TestHistoryIsFollowedUntilItsContextIsDone(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	seq := mustPublish(t, b, version("db", "1"), 0)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	var got []string
	err := b.History(ctx, HistoryQuery{Follow: true}, func(s events.Stored) error {
		got = append(got, s.ID())
		if len(got) == 1 {
			mustPublish(t, b, version("db", "2"), seq)
			return nil
		}
		cancel()
		return nil
	})
	if err != nil {
		t.Errorf("following ended with %v, want no error", err)
	}
	testkit.WantEqual(t, "events", []string{version("db", "1").ID(), version("db", "2").ID()}, got)
}

func TestTheLastOutcomeOfEachWorkloadIsOneThatIsNoStateToo(t *testing.T) {
	b := sharedServer(t).bus()
	rolled, other := outcome(), outcome()
	other.Workload.Name, other.Workload.UID = "api", "bb0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a33"
	held := outcome()
	held.Verb, held.Generation, held.StartedAt, held.Revision = events.VerbHeld, 0, time.Time{}, ""
	for _, o := range []events.Outcome{rolled, other, held} {
		mustTell(t, b, o)
	}
	got := map[string]events.Verb{}
	testkit.Await(t, "the last outcomes are read", func(ctx context.Context) bool {
		clear(got)
		err := b.LastOutcomes(ctx, testCluster, func(stored events.Stored) error {
			o, err := stored.Outcome()
			got[o.Workload.Name] = o.Verb
			return err
		})
		if err != nil && !IsSilence(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	testkit.WantEqual(t, "the last outcomes", map[string]events.Verb{"web-front": events.VerbHeld, "api": events.VerbStarted}, got)
}

// Once the renewal time has passed, the failure of a certificate is published again, of the same object at the same version.
func TestThatACertificateExpiresIsNoDuplicateOfItsFailure(t *testing.T) {
	s := sharedServer(t)
	expiring := changeOf(events.KindCertificate, events.VerbFailed)
	mustPublish(t, s.bus(), expiring, 0)
	if id, want := messages(t, s.jetstream(), events.StreamHistory)[0].Header.Get("Nats-Msg-Id"), "prod-eu/"+expiring.ID()+"/expiring"; id != want {
		t.Errorf("the message id is %s, want %s", id, want)
	}
}
