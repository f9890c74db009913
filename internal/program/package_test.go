package program

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(
		m,
		// A server that ends stops one stream after the other. One that copies from another may ask for a new consumer meanwhile, and waits for half
		// a minute for the answer.
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*stream).trySetupSourceConsumer.func3"),
	)
}
