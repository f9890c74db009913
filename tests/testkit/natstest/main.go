package natstest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/keyturn/keyturn/tests/testkit/natstest/shared"
)

// Main is the TestMain of a package whose tests share one NATS server, with an account for each. Otherwise it is [testkit.Main].
func Main(m *testing.M, options ...goleak.Option) { shared.Main(m, options...) }
