package identity

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func TestMain(m *testing.M) { natstest.Main(m) }
