package inspect

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

var historyNow = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

func TestHistoryFlags(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  HistoryOptions
		want bus.HistoryQuery
		err  string
	}{
		{
			name: "a source", set: HistoryOptions{Source: "secret/db", Namespace: "shop"},
			want: bus.HistoryQuery{Clusters: []string{"prod"}, Kind: events.KindSecret, Namespace: "shop", Name: "db"},
		},
		{
			name: "a secret in a store, which has no namespace", set: HistoryOptions{Source: "openbao/bao/root/secret/shop/db", Namespace: "shop"},
			want: bus.HistoryQuery{Clusters: []string{"prod"}, Kind: events.KindOpenBao, Name: "bao/root/secret/shop/db"},
		},
		{
			name: "a workload, whose name has a dash", set: HistoryOptions{Workload: "deployment/web-front"},
			want: bus.HistoryQuery{Clusters: []string{"prod"}, Kind: events.KindRollout, Name: "deployment-web-front"},
		},
		{name: "some clusters and all", set: HistoryOptions{Clusters: []string{"prod"}, AllClusters: true}, err: "--clusters: set together with --all-clusters, want one of them"},
		{name: "a duration", set: HistoryOptions{Since: "90m"}, want: bus.HistoryQuery{Clusters: []string{"prod"}, Since: historyNow.Add(-90 * time.Minute)}},
		{name: "a time", set: HistoryOptions{Since: "2026-03-14T12:00:00Z"}, want: bus.HistoryQuery{Clusters: []string{"prod"}, Since: historyNow.Truncate(time.Hour).Add(-3 * time.Hour)}},
		{name: "a time that is none", set: HistoryOptions{Since: "yesterday"}, err: `--since: "yesterday", want a duration such as 2h30m`},
		{
			name: "a workload by a short name of kubectl", set: HistoryOptions{Workload: "deploy/web"},
			want: bus.HistoryQuery{Clusters: []string{"prod"}, Kind: events.KindRollout, Name: "deployment-web"},
		},
		{
			name: "a workload of a kind that comes from configuration", set: HistoryOptions{Workload: "prometheus/main"},
			want: bus.HistoryQuery{Clusters: []string{"prod"}, Kind: events.KindRollout, Name: "prometheus-main"},
		},
		{name: "a workload that is a source", set: HistoryOptions{Workload: "secret/db"}, err: `--workload: "secret/db", want <kind>/<name>`},
		{
			name: "a verb that is none", set: HistoryOptions{Verbs: []string{"failed", "fail"}},
			err: `--verb: "fail", want some of ["applied" "changed" "claimed" "completed" "deleted" "failed" "held" "issued" "observed" "rotated" ` +
				`"skipped" "started" "synced" "watched"]`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options := tt.set
			options.Cluster = "prod"
			got, err := options.query(historyNow)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want an error with %q", err, tt.err)
				}
				return
			}
			testkit.Must(t, err)
			testkit.WantEqual(t, "query", tt.want, got)
		})
	}
}

func TestHistoryLines(t *testing.T) {
	const uid = "5f0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a11"
	change := events.Change{
		Cluster: "prod", Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}, Verb: events.VerbChanged,
		UID: uid, ResourceVersion: "7", Fingerprint: fp("2"), Time: historyNow, Changed: []string{"password"}, ChangedAt: "7",
		Trace: events.TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		Cause: &events.Cause{Source: "externalsecret/db", Event: "bao/root/secret/shop/db/7"},
	}
	outcome := events.Outcome{
		Cluster: "prod", Verb: events.VerbSkipped, Time: historyNow, Cause: change.ID(), Reason: "up-to-date", ResourceVersion: "8",
		Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: "web", UID: uid},
		Sources:  []events.OutcomeSource{{Source: "secret/db"}},
	}
	synced := events.Change{
		Cluster: "prod", Source: events.Source{Kind: events.KindExternalSecret, Namespace: "shop", Name: "db"}, Verb: events.VerbSynced,
		UID: uid, ResourceVersion: "9", Fingerprint: fp("2"), Time: historyNow, ChangedAt: "9",
		Cause:  &events.Cause{Event: "bao/root/secret/shop/db/7"},
		Status: &events.Status{Secret: "db", Reason: "SecretSynced", Revision: "1-7c2b41"},
	}
	refreshed := synced
	refreshed.Cause = &events.Cause{Earlier: "bao/root/secret/shop/db/7"}
	projection := events.Projection{
		Cluster: "prod", Verb: events.VerbSkipped, Time: historyNow, Reason: "secret-missing", Message: "secret/db does not exist.", ResourceVersion: "8",
		Target: events.Workload{Kind: "widget", Namespace: "shop", Name: "main", UID: uid, APIVersion: "example.org/v1", Resource: "widgets"},
	}
	var out bytes.Buffer
	for _, stored := range []events.Stored{
		storedOf(t, change), storedOf(t, outcome), storedOf(t, projection), storedOf(t, synced), storedOf(t, refreshed),
	} {
		testkit.Must(t, (columns{}).writeEvent(&out, stored, ""))
	}
	testkit.Must(t, (columns{}).writeEvent(&out, storedOf(t, change), "https://traces.example.com/trace/{traceID}"))
	want := `2026-03-14T15:09:26Z  prod          shop              secret/db                         changed    keys password; by externalsecret/db for bao/root/secret/shop/db/7; trace 4bf92f3577b34da6a3ce929d0e0e4736
2026-03-14T15:09:26Z  prod          shop              deployment/web                    skipped    up-to-date; secret/db
2026-03-14T15:09:26Z  prod          shop              widget/main                       skipped    secret-missing; secret/db does not exist.
2026-03-14T15:09:26Z  prod          shop              externalsecret/db                 synced     secret/db; for bao/root/secret/shop/db/7; SecretSynced
2026-03-14T15:09:26Z  prod          shop              externalsecret/db                 synced     secret/db; SecretSynced
2026-03-14T15:09:26Z  prod          shop              secret/db                         changed    keys password; by externalsecret/db for bao/root/secret/shop/db/7; trace https://traces.example.com/trace/4bf92f3577b34da6a3ce929d0e0e4736
`
	testkit.WantEqual(t, "lines", want, out.String())
}

func TestNarrowHistoryLinesFitATerminal(t *testing.T) {
	outcome := outcomeOf("web", events.VerbHeld, "lower-wave", "workloads of a lower wave are not finished with the same change: deployment/api", historyNow)
	outcome.Cluster = "prod"
	stored := storedOf(t, outcome)
	for _, tt := range []struct {
		name string
		set  HistoryOptions
		want string
	}{
		{
			"of one namespace",
			HistoryOptions{Namespace: "shop", Format: Table},
			"Mar 14 15:09:26  deployment/web            held       lower-wave; secret/db; workloads of a lower w…\n",
		},
		{
			"of all namespaces and clusters",
			HistoryOptions{AllClusters: true, Format: Table},
			"Mar 14 15:09:26  prod          shop            deployment/web            held       lower-wave; sec…\n",
		},
		{
			"at full width",
			HistoryOptions{Namespace: "shop", Format: Wide},
			"2026-03-14T15:09:26Z  prod          shop              deployment/web                    held       lower-wave; secret/db; " + outcome.Message + "\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			testkit.Must(t, tt.set.columns().writeEvent(&out, stored, ""))
			testkit.WantEqual(t, "line", tt.want, out.String())
		})
	}
}

func TestHistoryOfATrace(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	change := changeOfDB()
	change.Trace = events.TraceContext{Parent: "00-" + trace + "-00f067aa0ba902b7-01"}
	traced := storedOf(t, change)
	for asked, want := range map[string]bool{"": true, trace: true, strings.Repeat("1", 32): false} {
		h, err := NewHistory(HistoryOptions{Cluster: "prod", Format: JSON, Trace: asked}, historyNow, &bytes.Buffer{})
		testkit.Must(t, err)
		if got := h.wants(traced); got != want {
			t.Errorf("asked for %q, the event of the trace is listed: %t", asked, got)
		}
		if h.wants(storedOf(t, changeOfDB())) != (asked == "") {
			t.Errorf("asked for %q, the event without a trace is listed, or not", asked)
		}
	}
}

func TestEachAddsWhatIsNotSelectedToo(t *testing.T) {
	b := natstest.Buses(t, "demo")[0]
	publish(t, b, changeOfDB())
	options := HistoryOptions{Cluster: "demo", Source: "secret/tls", Namespace: "bank", Verbs: []string{"deleted"}, Trace: strings.Repeat("1", 32)}
	history, err := NewHistory(options, historyNow, &bytes.Buffer{})
	testkit.Must(t, err)
	var got []string
	natstest.Publish(t, func() error {
		got = nil
		return history.Each(t.Context(), &b.Reader, func(stored events.Stored) { got = append(got, stored.Subject) })
	})
	testkit.WantEqual(t, "subjects", []string{"keyturn.v1.demo.secret.shop.db"}, got)
}

// storedOf returns an event as a stream stores it.
func storedOf(t *testing.T, of interface{ Encode() (events.Stored, error) }) events.Stored {
	t.Helper()
	s, err := of.Encode()
	testkit.Must(t, err)
	return s
}

func TestHistoryLeavesOutWhatAClusterPublishesAsAnother(t *testing.T) {
	connection, js := natstest.Streams(t)
	b, err := bus.Open(t.Context(), connection, "demo", nil)
	testkit.Must(t, err)
	publish(t, b, changeOfDB())
	forged := changeOfDB()
	forged.Cluster = "prod"
	for _, name := range []string{"db", "tls"} {
		forged.Source.Name = name
		header, data, err := storedOf(t, forged).Message()
		testkit.Must(t, err)
		msg := &nats.Msg{Subject: events.HistorySubject(events.Subject("demo", forged.Source)), Header: header, Data: data}
		natstest.Publish(t, func() error {
			_, err := js.PublishMsg(t.Context(), msg, jetstream.WithMsgID(name))
			return err
		})
	}
	var out, warnings bytes.Buffer
	history, err := NewHistory(HistoryOptions{Cluster: "demo", Format: JSON}, historyNow, &warnings)
	testkit.Must(t, err)
	natstest.Publish(t, func() error {
		out.Reset()
		warnings.Reset()
		return history.Write(t.Context(), &b.Reader, &out)
	})
	if strings.Contains(out.String(), "prod") || strings.Count(out.String(), "demo") == 0 {
		t.Errorf("it shows what is not of the cluster, or not what is:\n%s", out.String())
	}
	const want = "warning: cluster demo has published as cluster \"prod\", left out: keyturn.v1.demo.secret.shop.db\n"
	if warnings.String() != want {
		t.Errorf("warnings are\n%s, want\n%s", warnings.String(), want)
	}
}
