package program

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func TestMain(m *testing.M) {
	natstest.Main(
		m,
		// At shutdown, a server stops one stream after the other. A stream that copies from another one may meanwhile request a new consumer, and
		// then waits half a minute for the response.
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*stream).trySetupSourceConsumer.func3"),
	)
}
