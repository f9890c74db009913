package program

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTheActuatorOfAHubMeasuresWhatClustersDeliverOnSubjectsOfOthers(t *testing.T) {
	url, owner := operated(t)
	for _, stream := range []jetstream.StreamConfig{
		{Name: "FLEET-eu", Sources: []*jetstream.StreamSource{{Name: "CHANGES"}}}, // its server applies no filter
		{Name: "FLEET", Sources: []*jetstream.StreamSource{{Name: "FLEET-eu", FilterSubject: "keyturn.v1.eu.>"}}},
	} {
		if _, err := owner.CreateStream(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
	}
	for _, cluster := range []string{"eu", "us"} {
		if _, err := owner.Publish(t.Context(), "keyturn.v1."+cluster+".secret.shop.db", nil); err != nil {
			t.Fatal(err)
		}
	}
	a := NewActuator("test")
	a.Process.NATS.URL, a.Fleet.Stream = url, "FLEET"
	var log testkit.Log
	connected(t, a, &log)
	var metrics string
	testkit.Await(t, "the metric counts the message of us", func(ctx context.Context) bool {
		code, body, err := testkit.Get(ctx, "http://"+log.Addr(t, "metrics")+"/metrics")
		metrics = body
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, `keyturn_fleet_foreign{from_cluster="eu"`) && strings.HasSuffix(line, "} 1\n") {
				return err == nil && code == http.StatusOK
			}
		}
		return false
	}, func() string { return metrics }, log.String)
}

func TestTheOptionsOfAFleetMustFit(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options FleetOptions
		embed   bool
		want    string
	}{
		{"a stream", FleetOptions{Stream: "FLEET", CredsFile: "reader.nk"}, false, ""},
		{"a user without a stream", FleetOptions{CredsFile: "reader.nk"}, false, "--fleet-creds: needs --fleet-stream"},
		{
			"a stream of the embedded server",
			FleetOptions{Stream: "FLEET"},
			true,
			"--fleet-stream: set with --nats-embedded, want --nats-url: the stream is on the servers of a hub",
		},
	} {
		t.Run(tt.name, func(t *testing.T) { testkit.WantError(t, tt.options.validate(tt.embed), tt.want) })
	}
}
