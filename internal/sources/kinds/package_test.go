package kinds

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
