package bus

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testkit/natstest/shared"
)

func TestMain(m *testing.M) { shared.Main(m) }
