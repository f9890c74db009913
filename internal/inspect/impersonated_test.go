package inspect

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func TestHistoryLeavesOutWhatAClusterPublishesAsAnother(t *testing.T) {
	for _, output := range []Format{Table, JSON} {
		t.Run(string(output), func(t *testing.T) {
			connection, js := natstest.Streams(t)
			bus, err := events.Open(t.Context(), connection, "demo", nil)
			if err != nil {
				t.Fatal(err)
			}
			change := changeOfDB()
			publish(t, bus, change)
			forged := change
			forged.Cluster = "prod"
			for _, name := range []string{"db", "tls"} {
				forged.Source.Name = name
				e, err := forged.Event()
				if err != nil {
					t.Fatal(err)
				}
				subject := events.HistorySubject(events.Subject("demo", forged.Source))
				msg, err := events.ToMsg(e, subject)
				if err != nil {
					t.Fatal(err)
				}
				natstest.Publish(t, func() error {
					_, err := js.PublishMsg(t.Context(), msg, jetstream.WithMsgID(name))
					return err
				})
			}
			var out, warnings bytes.Buffer
			history, err := NewHistory(HistoryOptions{Cluster: "demo", Output: output}, historyNow, &warnings)
			if err != nil {
				t.Fatal(err)
			}
			natstest.Publish(t, func() error {
				out.Reset()
				warnings.Reset()
				return history.Write(t.Context(), &bus.Reader, &out)
			})
			if strings.Contains(out.String(), "prod") || strings.Count(out.String(), "demo") == 0 {
				t.Errorf("it shows what is not of the cluster, or not what is:\n%s", out.String())
			}
			want := "warning: cluster demo has published as cluster \"prod\", left out: keyturn.v1.demo.secret.shop.db\n" +
				"warning: cluster demo has published as cluster \"prod\", 2 times\n"
			if warnings.String() != want {
				t.Errorf("warnings are\n%s, want\n%s", warnings.String(), want)
			}
		})
	}
}
