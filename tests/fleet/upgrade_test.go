package fleet

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestAFleetThatTookFromTheClustersDirectlyLosesNothingInTheUpgrade has a stream FLEET as releases before the streams FLEET-<cluster> declared it.
func TestAFleetThatTookFromTheClustersDirectlyLosesNothingInTheUpgrade(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	h := render(t, "eu:leaf", "us")
	h.start("eu", "us")
	content, err := os.ReadFile(filepath.Join(h.Dir, "streams", "fleet.json"))
	if err != nil {
		t.Fatal(err)
	}
	var old jetstream.StreamConfig
	if err := json.Unmarshal(content, &old); err != nil {
		t.Fatal(err)
	}
	old.MaxBytes, old.Duplicates, old.Sources = -1, 0, nil
	for _, cluster := range []string{"eu", "us"} {
		old.Sources = append(old.Sources, &jetstream.StreamSource{
			Name: "CHANGES", FilterSubject: "keyturn.v1." + cluster + ".>",
			External: &jetstream.ExternalStream{APIPrefix: "$JS." + cluster + ".API", DeliverPrefix: "keyturn.fleet." + cluster},
		})
	}
	operator, reader := h.jetstream("fleet-operator"), h.jetstream("fleet-reader")
	testkit.Await(t, "the stream of old is declared", func(ctx context.Context) bool {
		_, err := operator.CreateStream(ctx, old)
		return err == nil
	})
	ids := func(cluster string) (ids []string) {
		for _, msg := range messages(t, reader, "FLEET", "keyturn.v1."+cluster+".>") {
			ids = append(ids, msg.id)
		}
		return ids
	}
	for _, cluster := range []string{"eu", "us"} {
		h.publish(cluster, "secret.shop.db", cluster+"/1")
	}
	h.caughtUp("eu", "us")
	for _, cluster := range []string{"eu", "us"} {
		h.publish(cluster, "secret.shop.db", cluster+"/2")
	}
	h.caughtUp("eu", "us")

	h.declareFleet()
	for _, cluster := range []string{"eu", "us"} {
		h.publish(cluster, "secret.shop.db", cluster+"/3")
		want := []string{cluster + "/1", cluster + "/2", cluster + "/3"}
		var got []string
		testkit.Await(t, "FLEET has the next event of "+cluster, func(context.Context) bool {
			got = ids(cluster)
			return slices.Contains(got, want[2])
		})
		for _, id := range want[:2] {
			if !slices.Contains(got, id) {
				t.Errorf("FLEET has %v of %s, and %s no more", got, cluster, id)
			}
		}
	}
}
